// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Commands on a target that some families have no kernels for: what there is is built, predicted, tuned for and
// compared, and what is not is told.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tool_test_support.h"

namespace wavejit::tools {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

const std::string tiny = "attention_forward bf16 b1 q256 k256 h2 d64";

class TargetInPart : public ::testing::Test {
 protected:
  Outcome run(const std::vector<std::string>& arguments) const { return run_program(scratch_, arguments); }
  ScratchDirectory scratch_;
};

// Lines of a preset that it has no kernel for are left out, of an archive, too; the rest is there.
TEST_F(TargetInPart, PrebuildLeavesOutWhatPresetsAskBeside) {
  const std::vector<std::string> training = {
      "prebuild", "--target", "gfx1201", "--preset", "training", "--output", scratch_ / "trained.wavejit-archive"};
  const Outcome built = run(training);
  ASSERT_EQ(built.code, 0) << built.err;
  EXPECT_THAT(built.err, HasSubstr("left out --preset training: lines "));
  EXPECT_THAT(built.err, HasSubstr(": head dim 192/128 has no kernel on gfx1201; use head dim 128 or 64; reason: "));
  EXPECT_THAT(built.out, HasSubstr(" lines without a kernel"));
  EXPECT_THAT(built.out, HasSubstr("written " + (scratch_ / "trained.wavejit-archive")));
  std::vector<std::string> verify = training;
  verify.emplace_back("--verify");
  const Outcome verified = run(verify);
  EXPECT_EQ(verified.code, 0) << verified.err;
  EXPECT_THAT(verified.out, HasSubstr(" there and good, 0 missing or broken"));
}

// A preset of which it has nothing is a failure, and so is a line of the caller's own.
TEST_F(TargetInPart, PrebuildFailsWhereNothingIsLeftOrTheCallerWroteIt) {
  const Outcome preset = run({"prebuild", "--target", "gfx1201", "--preset", "mla"});
  EXPECT_EQ(preset.code, 4) << preset.err;
  EXPECT_THAT(preset.err, HasSubstr("attention_latent has no kernels for gfx1201"));
  const Outcome own = run({"prebuild", "--target", "gfx1201", "attention_forward bf16 b1 q16 k64 h1 d64",
                           "attention_backward bf16 b1 q16 k64 h1 d256 causal", "--preset", "training", "--verify"});
  EXPECT_NE(own.code, 0);
  EXPECT_THAT(own.err, HasSubstr("refused  descriptor 2: head dim 256 has no kernel on gfx1201; use "));
}

// Every preset: kernels, or the reason why there is none.
TEST_F(TargetInPart, PresetsHaveKernelsOrReasons) {
  for (const std::string name :
       {"deepseek-v3", "gemma-2-27b", "gpt-oss", "llama-3-70b", "llama-3-8b", "mistral-7b", "qwen3-8b", "training"}) {
    const Outcome looked = run({"prebuild", "--target", "gfx1201", "--preset", name, "--verify"});
    EXPECT_EQ(looked.code, 1) << name << looked.err;  // an empty cache: kernels are asked for, and missing
    EXPECT_THAT(looked.out, HasSubstr("0 there and good, ")) << name;
  }
  for (const std::string name : {"deepseek-v3.2", "gemma-2-9b", "glm-5", "mla", "top-k", "video-sparse"}) {
    const Outcome looked = run({"prebuild", "--target", "gfx1201", "--preset", name, "--verify"});
    EXPECT_EQ(looked.code, 4) << name << looked.err;
    EXPECT_THAT(looked.err, HasSubstr("gfx1201")) << name;
  }
}

TEST_F(TargetInPart, VariantsTellItsRoutes) {
  const Outcome told = run({"variants", "--target", "gfx942,gfx1201"});
  ASSERT_EQ(told.code, 0) << told.err;
  EXPECT_THAT(told.out, HasSubstr("\n  gfx942           "));
  EXPECT_THAT(told.out, HasSubstr("\n  gfx1201          64 128 192/128: generic 128x64; "));
  EXPECT_THAT(told.out, HasSubstr("\n  gfx1201          refused: attention_latent has no kernels for gfx1201"));
  EXPECT_THAT(told.out, Not(HasSubstr("gfx950  ")));
  expect_one_line_error(run({"variants", "--target", "gfx999"}), 2);
  expect_one_line_error(run({"variants", "--markdown", "--target", "gfx1201"}), 2);
}

TEST_F(TargetInPart, ExplainPlansACallAndSaysWhyNotOthers) {
  const Outcome told = run({"explain", "attention_forward bf16 b4 q1 k8192 h8/2 d128 causal", "--target", "gfx1201"});
  ASSERT_EQ(told.code, 0) << told.err;
  EXPECT_THAT(told.out, HasSubstr("route    generic 128x64, 8 waves, heads of a kv head packed, keys cut into chunks"));
  EXPECT_THAT(told.out,
              HasSubstr("merged in a second launch: merged has no kernel where waves have 32 lanes, as on gfx1201"));
  EXPECT_THAT(told.out, HasSubstr("combine  attention_combine bf16 d128 target=gfx1201"));
  EXPECT_THAT(told.out, HasSubstr("on gfx1201 nothing runs beside them"));
}

// What was tried is told in docs/adding-a-target.md.
TEST_F(TargetInPart, ExplainRefusesWithTheReason) {
  for (const auto& [words, reason] :
       {std::pair{"attention_forward bf16 b1 q40 k40 h2 d256", "head dim 256 leaves too few registers"},
        {"attention_forward bf16 b1 q40 k40 h2 d128 top_k=16", "a list of keys has no kernel"},
        {"attention_forward bf16 b1 q40 k256 h2 d128 lists=64x64", "a list of key blocks has no kernel"},
        {"attention_forward bf16 b1 q40 k40 h2 d128 queries=e4m3", "queries=e4m3 has no kernel"},
        {"attention_backward bf16 b1 q40 k40 h2 d256", "takes more than the 256 registers of a wave"},
        {"attention_latent bf16 b1 q1 k64 h16 d576/512", "attention_latent has no kernels for gfx1201"},
        {"sparse_indexer bf16 b1 q1 k4096 h64 top=2048", "sparse_indexer has no kernels for gfx1201"}}) {
    const Outcome told = run({"explain", words, "--target", "gfx1201"});
    expect_one_line_error(told, 4);
    EXPECT_THAT(told.err, HasSubstr(reason)) << words;
  }
  const Outcome pipeline = run({"explain", tiny, "--target", "gfx1201", "--pipeline", "dualwave"});
  EXPECT_EQ(pipeline.code, 4) << pipeline.out;
  EXPECT_THAT(pipeline.err, HasSubstr("dualwave"));
}

TEST_F(TargetInPart, TuneTriesWhatThereIs) {
  const Outcome tuned = run({"tune", tiny, "--target", "gfx1201", "--parameters", "pipeline", "--json", "--jobs", "2"});
  ASSERT_EQ(tuned.code, 0) << tuned.err;
  const Json report = Json::parse(tuned.out);
  int ran = 0;
  for (const Json& trial : report.at("trials"))
    if (trial.contains("cycles") && trial.at("cycles").get<std::uint64_t>() > 0) ++ran;
  EXPECT_EQ(report.at("trials").size(), 4U);
  EXPECT_EQ(ran, 2);  // the default, and the only pipeline
}

TEST_F(TargetInPart, RunPredictsCycles) {
  const Shape shape = {1, 70, 2, 64};
  std::uint32_t seed = 0;
  for (const std::string name : {"q", "k", "v"})
    write_text(scratch_ / (name + ".npy"), npy_file(shape, normal_values(shape, ++seed), {.half = true}));
  const Outcome outcome =
      run({"run", "attention_forward", "--q", scratch_ / "q.npy", "--k", scratch_ / "k.npy", "--v", scratch_ / "v.npy",
           "--out", scratch_ / "o.npy", "--device", "sim:gfx1201", "--cycles", "--check"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("predicted for the launch on gfx1201"));
}

TEST_F(TargetInPart, ProfileAndCompareAnswerByItsClock) {
  const Outcome profile = run({"profile", tiny, "--device", "sim:gfx1201"});
  ASSERT_EQ(profile.code, 0) << profile.err;
  EXPECT_THAT(profile.out, HasSubstr("predicted for the launch on gfx1201"));
  const Outcome compared =
      run({"compare", tiny, "attention_forward fp16 b1 q256 k256 h2 d64", "--device", "sim:gfx1201"});
  ASSERT_EQ(compared.code, 0) << compared.err;
  EXPECT_THAT(compared.out, HasSubstr("predicted"));
  const Outcome gradients = run({"profile", "attention_latent bf16 b1 q1 k64 h16 d576/512", "--device", "sim:gfx1201"});
  expect_one_line_error(gradients, 4);
}

}  // namespace
}  // namespace wavejit::tools
