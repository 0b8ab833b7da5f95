// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// `wavejit run attention_backward`: what `run attention_forward` wrote and dO in, gradients out.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "tool_test_support.h"
#include "tools/npy.h"

namespace wavejit::tools {
namespace {

using ::testing::HasSubstr;
using Words = std::vector<std::string>;

// A number a head, or a row of them a batch.
std::string npy_vector_file(const std::vector<std::int64_t>& shape, const std::vector<float>& values) {
  return npy_bytes(values, shape);
}

class RunGradientsTest : public ::testing::Test {
 protected:
  void save(const std::string& name, const Shape& shape, std::uint64_t seed) {
    write_text(scratch_ / name, npy_file(shape, normal_values(shape, seed), {}));
  }
  void save_inputs(std::int64_t keys) {
    const Shape queries = {1, 20, 4, 64};
    save("q.npy", queries, 1);
    save("do.npy", queries, 2);
    save("k.npy", {1, keys, 2, 64}, 3);
    save("v.npy", {1, keys, 2, 64}, 4);
  }
  Outcome run(const std::string& family, const Words& files, const Words& more) {
    Words words = {"run", family, "--device", "sim:gfx950", "--dtype", "bf16"};
    for (const std::string& file : files) words.insert(words.end(), {"--" + file, scratch_ / (file + ".npy")});
    words.insert(words.end(), more.begin(), more.end());
    return run_program(scratch_, words, {{"WAVEJIT_CACHE_DIR", scratch_ / "cache"}});
  }
  Outcome forward(const Words& more) {
    return run("attention_forward", {"q", "k", "v", "lse"}, [&] {
      Words words = {"--out", scratch_ / "o.npy"};
      words.insert(words.end(), more.begin(), more.end());
      return words;
    }());
  }
  Outcome gradients(const Words& outputs, const Words& more) {
    Words files = {"q", "k", "v", "o", "lse", "do"};
    files.insert(files.end(), outputs.begin(), outputs.end());
    return run("attention_backward", files, more);
  }

  ScratchDirectory scratch_;
};

// A row that sees one key gives it its whole gradient, and no score could have been better.
TEST_F(RunGradientsTest, OfOneKeyAreSumsOfDo) {
  save_inputs(1);
  ASSERT_EQ(forward({}).code, 0);
  const Outcome outcome = gradients({"dq", "dk", "dv"}, {"--gradients-fp32", "--check", "--repeat", "1"});
  ASSERT_EQ(outcome.code, 0) << outcome.err << outcome.out;
  EXPECT_THAT(outcome.out, HasSubstr("kernel   attention_backward_dq bf16 d64"));
  EXPECT_THAT(outcome.out, HasSubstr("check    passed"));
  EXPECT_THAT(outcome.out, HasSubstr("the same bits each time"));
  EXPECT_THAT(outcome.out, Not(HasSubstr("row RMS"))) << "nobody knows what to expect of a row";
  const std::vector<float> d_o = normal_values({1, 20, 4, 64}, 2);
  const std::vector<float> dv = floats_of(scratch_ / "dv.npy", "(1, 1, 2, 64)");
  for (std::size_t head = 0; head < 2; ++head)
    for (std::size_t dim = 0; dim < 64; ++dim) {
      double sum = 0;
      double magnitude = 0;
      for (std::size_t row = 0; row < 20; ++row)
        for (std::size_t in_group = 0; in_group < 2; ++in_group) {
          const auto term = static_cast<double>(d_o[(((row * 4) + (head * 2) + in_group) * 64) + dim]);
          sum += term;
          magnitude += std::fabs(term);
        }
      ASSERT_NEAR(dv[(head * 64) + dim], sum, magnitude / 256) << head << ' ' << dim;  // dO is rounded to bf16
    }
  for (const float value : floats_of(scratch_ / "dq.npy", "(1, 20, 4, 64)")) ASSERT_NEAR(value, 0, 0.05);
}

TEST_F(RunGradientsTest, OfMasksAndModifiers) {
  save_inputs(30);
  write_text(scratch_ / "alibi.npy", npy_vector_file({4}, {0.5F, 0.25F, 0.125F, 0.0625F}));
  const Words modifiers = {"--causal", "--softcap", "8", "--alibi", scratch_ / "alibi.npy", "--scale", "0.2"};
  ASSERT_EQ(forward(modifiers).code, 0);
  const Outcome outcome = gradients({"dk"}, [&] {
    Words words = modifiers;
    words.emplace_back("--check");
    return words;
  }());
  ASSERT_EQ(outcome.code, 0) << outcome.err << outcome.out;
  EXPECT_THAT(outcome.out, HasSubstr("mask=causal softcap alibi"));
  EXPECT_EQ(floats_of(scratch_ / "dk.npy", "(1, 30, 2, 64)").size(), std::size_t{30} * 2 * 64);
  // Not of this forward call: P is another, and the check that is asked for is of the arrays as they are.
  const Outcome other = gradients({"dk"}, {"--scale", "0.2"});
  EXPECT_EQ(other.code, 0) << other.err;
}

TEST_F(RunGradientsTest, OfHeadDimsOfVThatAreOthers) {
  save("q.npy", {1, 20, 4, 192}, 1);
  save("do.npy", {1, 20, 4, 128}, 2);
  save("k.npy", {1, 30, 2, 192}, 3);
  save("v.npy", {1, 30, 2, 128}, 4);
  ASSERT_EQ(forward({"--causal"}).code, 0);
  const Outcome outcome = gradients({"dk", "dv"}, {"--causal", "--check"});
  ASSERT_EQ(outcome.code, 0) << outcome.err << outcome.out;
  EXPECT_THAT(outcome.out, HasSubstr("check    passed"));
  EXPECT_EQ(floats_of(scratch_ / "dk.npy", "(1, 30, 2, 192)").size(), std::size_t{30} * 2 * 192);
  EXPECT_EQ(floats_of(scratch_ / "dv.npy", "(1, 30, 2, 128)").size(), std::size_t{30} * 2 * 128);
  save("do.npy", {1, 20, 4, 192}, 2);
  EXPECT_THAT(gradients({"dv"}, {"--causal"}).err, HasSubstr("[1, 20, 4, 128] is accepted"));
}

// With 29 keys rows of a bias do not follow one another in memory.
TEST_F(RunGradientsTest, OfABiasAndOfSinks) {
  save_inputs(29);
  save("bias.npy", {1, 4, 20, 29}, 9);
  write_text(scratch_ / "sink.npy", npy_vector_file({4}, {0.5F, -1, 2, 0}));
  const Words modifiers = {"--causal", "--bias", scratch_ / "bias.npy", "--sink", scratch_ / "sink.npy"};
  ASSERT_EQ(forward(modifiers).code, 0);
  for (const bool fp32 : {false, true}) {
    const Outcome outcome = gradients({"dk", "d-bias", "d-sink"}, [&] {
      Words words = modifiers;
      words.insert(words.end(), {"--check", "--repeat", "1"});
      if (fp32) words.emplace_back("--gradients-fp32");
      return words;
    }());
    ASSERT_EQ(outcome.code, 0) << outcome.err << outcome.out;
    EXPECT_THAT(outcome.out, HasSubstr("check    passed"));
    // What a row gives to its keys and to its sink adds up to nothing.
    const std::vector<float> of_bias = floats_of(scratch_ / "d-bias.npy", "(1, 4, 20, 29)");
    const std::vector<float> of_sinks = floats_of(scratch_ / "d-sink.npy", "(1, 4)");
    for (std::size_t head = 0; head < 4; ++head) {
      double sum = 0;
      double magnitude = 0;
      for (std::size_t i = 0; i < std::size_t{20} * 29; ++i) {
        const auto element = static_cast<double>(of_bias[(head * 20 * 29) + i]);
        sum += element;
        magnitude += std::fabs(element);
      }
      EXPECT_NEAR(sum, -static_cast<double>(of_sinks[head]), magnitude / 64) << head;
      EXPECT_GT(std::fabs(of_sinks[head]), 0);
    }
  }
  const Outcome without = gradients({"d-sink"}, {});
  expect_one_line_error(without, 2);
  EXPECT_THAT(without.err, HasSubstr("--d-sink needs --sink"));
  save("bias.npy", {1, 3, 20, 29}, 9);
  const Outcome shape = gradients({"d-bias"}, {"--bias", scratch_ / "bias.npy"});
  expect_one_line_error(shape, 3);
  EXPECT_THAT(shape.err, HasSubstr("its shape is [1, 3, 20, 29]; [1 or 1, 4 or 1, 20, 29] is accepted"));
}

// Keys in two calls: the second goes on with dq where the first stopped, and the bits are those of one call.
TEST_F(RunGradientsTest, OfPiecesOfTheKeys) {
  constexpr std::int64_t keys = 40;
  constexpr std::int64_t cut = 16;
  save_inputs(keys);
  ASSERT_EQ(forward({}).code, 0);
  ASSERT_EQ(gradients({"dq"}, {"--gradients-fp32"}).code, 0);
  const std::vector<float> whole = floats_of(scratch_ / "dq.npy", "(1, 20, 4, 64)");
  const auto save_piece = [&](std::int64_t first, std::int64_t end) {
    for (const auto& [name, seed] : {std::pair{"k.npy", 3}, {"v.npy", 4}}) {
      const std::vector<float> all = normal_values({1, keys, 2, 64}, static_cast<std::uint64_t>(seed));
      write_text(scratch_ / name,
                 npy_file({1, end - first, 2, 64}, {all.begin() + (first * 2 * 64), all.begin() + (end * 2 * 64)}, {}));
    }
  };
  save_piece(0, cut);
  const Outcome first = gradients(
      {}, {"--gradients-fp32", "--check", "--repeat", "1", "--sums-behind", "dq", "--dq", scratch_ / "sums.npy"});
  ASSERT_EQ(first.code, 0) << first.err << first.out;
  EXPECT_THAT(first.out, HasSubstr("check    passed"));
  save_piece(cut, keys);
  const Outcome second =
      gradients({"dq"}, {"--gradients-fp32", "--check", "--repeat", "1", "--dq-before", scratch_ / "sums.npy"});
  ASSERT_EQ(second.code, 0) << second.err << second.out;
  EXPECT_THAT(second.out, HasSubstr("check    passed"));
  EXPECT_THAT(second.out, HasSubstr("the same bits each time"));
  EXPECT_EQ(floats_of(scratch_ / "dq.npy", "(1, 20, 4, 64)"), whole);

  const Words sums = {"--dq-before", scratch_ / "sums.npy"};
  EXPECT_THAT(gradients({"dq"}, sums).err, HasSubstr("--dq-before needs --gradients-fp32"));
  EXPECT_THAT(gradients({"dk"}, {"--gradients-fp32", "--dk-before", scratch_ / "sums.npy"}).err,
              HasSubstr("--dk-before alone is not accepted"));
  EXPECT_THAT(gradients({"dk", "dv"}, {"--gradients-fp32", "--dk-before", scratch_ / "sums.npy", "--dv-before",
                                       scratch_ / "sums.npy"})
                  .err,
              HasSubstr("its shape is [1, 20, 4, 64]; [1, 24, 2, 64] is accepted"));
  EXPECT_THAT(gradients({"dq"}, {"--gradients-fp32", "--sums-behind", "dk"}).err,
              HasSubstr("'dk' is not accepted; dq, dk_dv and dq,dk_dv are"));
}

TEST_F(RunGradientsTest, WhatIsWrongIsOneLine) {
  save_inputs(30);
  save("o.npy", {1, 20, 4, 64}, 5);
  write_text(scratch_ / "lse.npy", npy_vector_file({4, 20}, std::vector<float>(80)));
  const Outcome nothing = gradients({}, {});
  expect_one_line_error(nothing, 2);
  EXPECT_THAT(nothing.err, HasSubstr("--dq, --dk, --dv, --d-sink and --d-bias FILE.npy are accepted, or some of them"));
  const Outcome lse = gradients({"dq"}, {});
  expect_one_line_error(lse, 3);
  EXPECT_THAT(lse.err, HasSubstr("its shape has 2 dimensions; 3 are accepted: [batch, heads, length]"));
  save("do.npy", {1, 20, 4, 32}, 5);
  const Outcome shape = gradients({"dq"}, {});
  expect_one_line_error(shape, 3);
  EXPECT_THAT(shape.err, HasSubstr("its shape is [1, 20, 4, 32]; [1, 20, 4, 64] is accepted"));
}

}  // namespace
}  // namespace wavejit::tools
