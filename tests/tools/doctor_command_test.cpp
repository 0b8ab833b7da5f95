// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// wavejit doctor, as a user starts it, on simulated devices that are as built and on some that are not.
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tool_test_support.h"

namespace wavejit::tools {
namespace {

using Json = nlohmann::json;

struct Examined {
  Outcome outcome;
  std::map<std::string, Json> findings;
  std::map<std::string, int> counts;  // by status
};

class Doctor : public ::testing::Test {
 protected:
  Examined examine(std::vector<std::string> arguments, std::map<std::string, std::string> variables = {}) const {
    const std::string report = scratch_ / "report.json";
    arguments.insert(arguments.begin(), "doctor");
    arguments.insert(arguments.end(), {"--json", report});
    variables.emplace("WAVEJIT_CACHE_DIR", ::getenv("WAVEJIT_KEPT_KERNELS"));
    Examined examined{.outcome = run_program(scratch_, arguments, variables), .findings = {}, .counts = {}};
    const std::string text = read_text(report);
    if (text.empty()) return examined;
    for (const Json& finding : Json::parse(text).at("findings")) {
      examined.findings[finding.at("name")] = finding;
      ++examined.counts[finding.at("status")];
    }
    return examined;
  }

  ScratchDirectory scratch_;
};

TEST_F(Doctor, FindsNothingOnADeviceThatIsAsBuilt) {
  for (const char* target : {"sim:gfx942", "sim:gfx950"}) {
    const Examined examined = examine({"--device", target, "--risk", "3"});
    EXPECT_EQ(examined.outcome.code, 0) << examined.outcome.out << examined.outcome.err;
    EXPECT_GE(examined.counts.at("as expected"), 25) << examined.outcome.out;
    EXPECT_EQ(examined.counts.size(), 1U) << examined.outcome.out;
    const std::string& dies = examined.findings.at("dispatch_round_the_dies").at("text").get_ref<const std::string&>();
    EXPECT_EQ(dies, "workgroups go round 8 dies");
    const std::string& sums = examined.findings.at("sums_32x32x8_bf16").at("text").get_ref<const std::string&>();
    EXPECT_TRUE(sums.contains("Fits: products one after the other")) << sums;
    EXPECT_FALSE(sums.contains("groups")) << "the patterns tell no models apart: " << sums;
  }
}

TEST_F(Doctor, FindsSumsInGroups) {
  const Examined examined = examine({"--device", "sim:gfx942", "--only", "sums"}, {{"WAVEJIT_SIM_MATRIX", "cdna3"}});
  EXPECT_EQ(examined.outcome.code, 0) << examined.outcome.err;
  for (const char* name : {"sums_32x32x8_bf16", "sums_32x32x8_f16", "sums_16x16x16_bf16", "sums_16x16x16_f16"}) {
    const Json& finding = examined.findings.at(name);
    EXPECT_EQ(finding.at("status"), "DIFFERS") << finding;
    EXPECT_TRUE(finding.at("text").get<std::string>().contains("Fits: groups of 8, cut as CDNA3"))
        << finding.at("text");
  }
  EXPECT_EQ(examined.findings.at("sums_32x32x16_fp8").at("status"), "DIFFERS");
}

TEST_F(Doctor, SaysThatNoModelFits) {
  const Examined examined =
      examine({"--device", "sim:gfx950", "--only", "sums_32x32x16_b"}, {{"WAVEJIT_SIM_MATRIX", "seeded:3"}});
  const std::string text = examined.findings.at("sums_32x32x16_bf16").at("text");
  EXPECT_TRUE(text.contains("No model fits; nearest")) << text;
}

TEST_F(Doctor, FindsTranscendentalsThatAreNotTheNearest) {
  const Examined examined =
      examine({"--device", "sim:gfx950", "--only", "ulps"}, {{"WAVEJIT_SIM_TRANSCENDENTALS", "seeded:7"}});
  EXPECT_EQ(examined.outcome.code, 0) << "the ISA allows 1 ulp";
  EXPECT_EQ(examined.counts.at("DIFFERS"), 5) << examined.outcome.out;
  EXPECT_GT(examined.findings.at("ulps_exp2").at("data").at("beyond_simulated"), 100);
}

TEST_F(Doctor, FindsAnotherBoard) {
  const Examined examined = examine({"--device", "sim:gfx942@6x38", "--risk", "1"});
  EXPECT_EQ(examined.outcome.code, 0) << examined.outcome.err;
  EXPECT_EQ(examined.findings.at("fact_dies").at("text"), "6; the target table has 8");
  EXPECT_EQ(examined.findings.at("fact_compute_units").at("text"), "228; the target table has 304");
  EXPECT_EQ(examined.findings.at("dispatch_round_the_dies").at("text"), "workgroups go round 6 dies");
  EXPECT_EQ(examined.counts.at("DIFFERS"), 2) << examined.outcome.out;
}

// A device that ends every wave after a few instructions.
TEST_F(Doctor, AFailureHasANonzeroExitCode) {
  const Examined examined = examine({"--device", "sim:gfx950", "--only", "lane_swap", "--only", "transpose"},
                                    {{"WAVEJIT_SIM_INSTRUCTION_LIMIT", "5"}});
  EXPECT_EQ(examined.outcome.code, 1);
  EXPECT_GE(examined.counts.at("FAILED"), 1) << examined.outcome.out;
  EXPECT_FALSE(examined.counts.contains("as expected")) << examined.outcome.out;
}

TEST_F(Doctor, HoldsWholeCallsAgainstFloat64AndAgainstTheSimulatedBits) {
  const std::string decode = "attention_forward bf16 b2 q1 k300 h16/2 d128 lse";
  const Examined plain = examine({"--device", "sim:gfx950", "--only", "call " + decode, "--only", "bits " + decode});
  EXPECT_EQ(plain.outcome.code, 0) << plain.outcome.out;
  EXPECT_EQ(plain.counts.at("as expected"), 2) << plain.outcome.out;
  const std::string text = plain.findings.at("call " + decode).at("text");
  for (const char* variant : {"pipeline=auto", "lazy_rescale=off", "xcd_swizzle=on", "xcd_swizzle=off"})
    EXPECT_TRUE(text.contains(variant)) << text;
  const Examined other = examine({"--device", "sim:gfx950", "--only", "call " + decode, "--only", "bits " + decode},
                                 {{"WAVEJIT_SIM_MATRIX", "seeded:5"}, {"WAVEJIT_SIM_TRANSCENDENTALS", "seeded:5"}});
  EXPECT_EQ(other.outcome.code, 0) << "right all the same: " << other.outcome.out;
  EXPECT_EQ(other.findings.at("call " + decode).at("status"), "as expected");
  EXPECT_EQ(other.findings.at("bits " + decode).at("status"), "DIFFERS");
}

TEST_F(Doctor, HoldsLatentAttentionAgainstFloat64) {
  const std::string call = "attention_latent fp16 b1 q4 k130 h24 d576/512 causal layout=paged:64 sink";
  const Examined examined = examine({"--device", "sim:gfx950", "--only", "call " + call, "--only", "bits " + call});
  EXPECT_EQ(examined.outcome.code, 0) << examined.outcome.out;
  EXPECT_EQ(examined.counts.at("as expected"), 2) << examined.outcome.out;
}

TEST_F(Doctor, HoldsTheIndexerAndTheListsThatItChoosesAgainstFloat64) {
  const std::string scores = "sparse_indexer fp16 b1 q2 k100 h40 key_scales causal";
  const std::string list = "sparse_indexer bf16 b1 q1 k200 h64 page=16 top=32";
  const std::string attention = "attention_latent bf16 b2 q1 k400 h16 d576/512 lse layout=paged:64 top_k=300:mixed";
  for (const char* target : {"sim:gfx942", "sim:gfx950"}) {
    std::vector<std::string> words = {"--device", target};
    for (const std::string& call : {scores, list, attention})
      for (const char* question : {"call ", "bits "}) {
        words.emplace_back("--only");
        words.push_back(question + call);
      }
    const Examined examined = examine(words);
    EXPECT_EQ(examined.outcome.code, 0) << examined.outcome.out;
    EXPECT_EQ(examined.counts.at("as expected"), 6) << examined.outcome.out;
  }
}

// Floats of 8 bits are of one target each, integers of both.
TEST_F(Doctor, HoldsCallsOver8BitsAgainstFloat64) {
  const std::string forward =
      "attention_forward bf16 b2 q3 k300 h8/2 d128 causal lse layout=paged:16 k_lengths=300,77 cache=";
  const std::string queries = "attention_forward bf16 b1 q256 k300 h4/2 d128 causal queries=e4m3 lse";
  struct Of {
    const char* target;
    const char* floats;
    const char* others;  // floats of the other target
    int right;           // how many calls, of four
  };
  for (const Of& of : {Of{"sim:gfx942", "e4m3_fnuz", "e4m3", 2}, Of{"sim:gfx950", "e4m3", "e4m3_fnuz", 3}}) {
    std::vector<std::string> words = {"--device", of.target};
    for (const std::string& call : {forward + of.floats + " cache_scales=h", forward + of.others + " cache_scales=h",
                                    forward + "i8 cache_scales=token", queries})
      for (const char* question : {"call ", "bits "}) {
        words.emplace_back("--only");
        words.push_back(question + call);
      }
    const Examined examined = examine(words);
    EXPECT_EQ(examined.counts.at("as expected"), 2 * of.right) << examined.outcome.out;
    EXPECT_EQ(examined.findings.at("call " + forward + of.others + " cache_scales=h").at("status"), "skipped");
  }
}

TEST_F(Doctor, PredictsWhatItCannotMeasure) {
  for (const std::string call : {"time attention_forward bf16 b1 q16384 k16384 h16/2 d64 causal",
                                 "time sparse_indexer bf16 b48 q1 k8192 h64 page=64 top=2048"}) {
    const Examined examined = examine({"--device", "sim:gfx950", "--only", call});
    EXPECT_EQ(examined.outcome.code, 0) << examined.outcome.err;
    const Json& finding = examined.findings.at(call);
    EXPECT_EQ(finding.at("status"), "told");
    EXPECT_GT(finding.at("data").at("predicted_cycles"), 10'000);
  }
}

// What the target has no kernel for is no fault of it.
TEST_F(Doctor, LeavesOutTheTimeOfWhatATargetLacks) {
  const std::string call = "time sparse_indexer bf16 b48 q1 k8192 h64 page=64 top=2048";
  const Examined examined = examine({"--device", "sim:gfx1201", "--only", call});
  EXPECT_EQ(examined.outcome.code, 0) << examined.outcome.err;
  EXPECT_EQ(examined.findings.at(call).at("status"), "skipped");
}

TEST_F(Doctor, ListsItsQuestionsAndRefusesThoseThatAreNone) {
  const Outcome listed = run_program(scratch_, {"doctor", "--device", "sim:gfx950", "--list"});
  EXPECT_EQ(listed.code, 0) << listed.err;
  EXPECT_TRUE(listed.out.contains("3  dma_beyond_64_kib: docs/isa.md")) << listed.out;
  EXPECT_LT(listed.out.find("fact_dies"), listed.out.find("dma_beyond_64_kib"));
  EXPECT_LT(listed.out.find("dma_beyond_64_kib"), listed.out.find("call attention_forward"));
  expect_one_line_error(run_program(scratch_, {"doctor", "--device", "sim:gfx950", "--only", "horoscope"}), 2);
}

}  // namespace
}  // namespace wavejit::tools
