// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// `wavejit run softmax_lse`: files in, files out, the same answer as softmax written here.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tool_test_support.h"
#include "tools/npy.h"

namespace wavejit::tools {
namespace {

using ::testing::HasSubstr;
using Words = std::vector<std::string>;

class RunSoftmaxTest : public ::testing::Test {
 protected:
  void SetUp() override { write_text(scratch_ / "s.npy", npy_file(shape_, scores_, {})); }

  Outcome run(Words more) {
    Words words = {"run", "softmax_lse", "--scores", scratch_ / "s.npy", "--device", "sim:gfx950"};
    words.insert(words.end(), more.begin(), more.end());
    return run_program(scratch_, words);
  }

  ScratchDirectory scratch_;
  Shape shape_ = {2, 3, 5, 70};
  std::vector<float> scores_ = normal_values(shape_, 7);
};

TEST_F(RunSoftmaxTest, WritesWeightsAndLse) {
  const Outcome outcome = run({"--out", scratch_ / "w.npy", "--lse", scratch_ / "l.npy", "--causal", "--scale", "2",
                               "--check", "--repeat", "1"});
  ASSERT_EQ(outcome.code, 0) << outcome.err << outcome.out;
  EXPECT_THAT(outcome.out, HasSubstr("softmax_lse fp32"));
  EXPECT_THAT(outcome.out, HasSubstr("check    passed"));
  const std::vector<float> weights = floats_of(scratch_ / "w.npy", "(2, 3, 5, 70)");
  const std::vector<float> lse = floats_of(scratch_ / "l.npy", "(2, 3, 5)");
  for (std::size_t row = 0; row < lse.size(); ++row) {
    const std::size_t seen = 70 - 4 + row % 5;  // aligned bottom-right
    double sum = 0;
    for (std::size_t key = 0; key < seen; ++key) sum += std::exp(2 * static_cast<double>(scores_[(row * 70) + key]));
    EXPECT_NEAR(lse[row], std::log(sum), 1e-5);
    for (std::size_t key = 0; key < 70; ++key)
      ASSERT_NEAR(weights[(row * 70) + key],
                  key < seen ? std::exp(2 * static_cast<double>(scores_[(row * 70) + key])) / sum : 0.0, 1e-6)
          << row << " " << key;
  }
}

TEST_F(RunSoftmaxTest, EachTypeAndLseAlone) {
  for (const char* type : {"fp16", "bf16"}) {
    const Outcome outcome =
        run({"--out", scratch_ / "w.npy", "--dtype", type, "--weights", type, "--window", "9,2", "--check"});
    ASSERT_EQ(outcome.code, 0) << outcome.err << outcome.out;
    EXPECT_THAT(outcome.out, HasSubstr(std::string("weights=") + type));
  }
  const Outcome alone = run({"--lse", scratch_ / "only.npy", "--check", "--causal-prefix", "0"});
  ASSERT_EQ(alone.code, 0) << alone.err << alone.out;
  EXPECT_EQ(floats_of(scratch_ / "only.npy", "(2, 3, 5)").size(), 30U);
}

TEST_F(RunSoftmaxTest, WhatIsWrongIsOneLine) {
  const Outcome nothing = run({});
  EXPECT_EQ(nothing.code, 2);
  EXPECT_THAT(nothing.err, HasSubstr("--out and --lse FILE.npy are accepted"));
  expect_one_line_error(nothing, 2);
  const Outcome window = run({"--lse", scratch_ / "l.npy", "--window", "3"});
  expect_one_line_error(window, 2);
  EXPECT_THAT(window.err, HasSubstr("two numbers from -1 are, as 1023,0"));
  write_text(scratch_ / "s.npy", npy_file({0, 3, 5, 70}, {}, {}));
  const Outcome empty = run({"--lse", scratch_ / "l.npy"});
  EXPECT_THAT(empty.err, HasSubstr("each at least 1, is accepted"));
}

}  // namespace
}  // namespace wavejit::tools
