// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// `wavejit run attention_merge`: parts from files, the same answer as the sum written here.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tool_test_support.h"
#include "tools/npy.h"

namespace wavejit::tools {
namespace {

using ::testing::HasSubstr;
using Words = std::vector<std::string>;

class RunMergeTest : public ::testing::Test {
 protected:
  // LSE [2, 3, 5] of rows whose O is [2, 5, 3, 16]; row 7 of the second part saw no key.
  void SetUp() override {
    lse_[1][7] = -std::numeric_limits<float>::infinity();
    for (std::size_t part = 0; part < 2; ++part) {
      write_text(scratch_ / ("o" + std::to_string(part) + ".npy"), npy_file({2, 5, 3, 16}, o_[part], {}));
      const std::vector<std::int64_t> shape = {2, 3, 5};
      write_text(scratch_ / ("lse" + std::to_string(part) + ".npy"), npy_bytes(lse_[part], shape));
    }
  }

  Outcome run(Words more) {
    Words words = {"run",
                   "attention_merge",
                   "--o",
                   scratch_ / "o0.npy",
                   scratch_ / "o1.npy",
                   "--lse",
                   scratch_ / "lse0.npy",
                   scratch_ / "lse1.npy",
                   "--device",
                   "sim:gfx950"};
    words.insert(words.end(), more.begin(), more.end());
    return run_program(scratch_, words);
  }

  ScratchDirectory scratch_;
  std::vector<float> o_[2] = {normal_values({2, 5, 3, 16}, 3), normal_values({2, 5, 3, 16}, 4)};
  std::vector<float> lse_[2] = {normal_values({2, 3, 5, 1}, 5), normal_values({2, 3, 5, 1}, 6)};
};

TEST_F(RunMergeTest, WritesTheSumOfTwoParts) {
  const Outcome outcome =
      run({"--out", scratch_ / "o.npy", "--out-lse", scratch_ / "lse.npy", "--check", "--repeat", "1"});
  ASSERT_EQ(outcome.code, 0) << outcome.err << outcome.out;
  EXPECT_THAT(outcome.out, HasSubstr("attention_merge fp32"));
  EXPECT_THAT(outcome.out, HasSubstr("check    passed"));
  const std::vector<float> out = floats_of(scratch_ / "o.npy", "(2, 5, 3, 16)");
  const std::vector<float> lse = floats_of(scratch_ / "lse.npy", "(2, 3, 5)");
  for (std::size_t row = 0; row < lse.size(); ++row) {  // [batch][head][token]
    const std::size_t of_o = ((row / 15 * 5 + row % 5) * 3 + row / 5 % 3) * 16;
    const double weights[] = {std::exp(static_cast<double>(lse_[0][row])), std::exp(static_cast<double>(lse_[1][row]))};
    EXPECT_NEAR(lse[row], std::log(weights[0] + weights[1]), 1e-5) << row;
    for (std::size_t dim = of_o; dim < of_o + 16; ++dim)
      ASSERT_NEAR(out[dim],
                  (weights[0] * static_cast<double>(o_[0][dim]) + weights[1] * static_cast<double>(o_[1][dim])) /
                      (weights[0] + weights[1]),
                  1e-5)
          << row;
  }
}

TEST_F(RunMergeTest, EachTypeOfPartsAndResult) {
  for (const char* type : {"fp16", "bf16"})
    for (const char* result : {type, "fp32"}) {
      const Outcome outcome = run({"--out", scratch_ / "o.npy", "--dtype", type, "--result", result, "--check"});
      ASSERT_EQ(outcome.code, 0) << outcome.err << outcome.out;
      EXPECT_THAT(outcome.out, HasSubstr(std::string("attention_merge ") + type));
    }
}

TEST_F(RunMergeTest, WhatIsWrongIsOneLine) {
  const Outcome nothing = run({});
  expect_one_line_error(nothing, 2);
  EXPECT_THAT(nothing.err, HasSubstr("--out is required"));
  const Outcome uneven = run({"--out", scratch_ / "o.npy", "--o", scratch_ / "o0.npy"});
  expect_one_line_error(uneven, 2);
  EXPECT_THAT(uneven.err, HasSubstr("--o has 3 files and --lse 2"));
  const std::vector<std::int64_t> shape = {2, 5, 3};
  write_text(scratch_ / "lse1.npy", npy_bytes(lse_[1], shape));
  const Outcome turned = run({"--out", scratch_ / "o.npy"});
  EXPECT_EQ(turned.code, 3);
  EXPECT_THAT(turned.err, HasSubstr("; [2, 3, 5] is accepted"));
}

}  // namespace
}  // namespace wavejit::tools
