// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the checker of attention's results lets pass and what not, number by number.
#include "tools/checker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace wavejit::tools {
namespace {

using ::testing::HasSubstr;

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();

// One row of 64 elements of about one, weights spread over many keys.
struct Case {
  std::vector<double> output = std::vector<double>(64, 1.25);
  std::vector<double> magnitude = std::vector<double>(64, 2.0);
  double spread = 4;
  double score = 1;
  double lse = 3;
  double largest = 0;
  double mass = 0;
  std::vector<float> result = std::vector<float>(64, 1.25F);
  std::optional<float> result_lse = 3.0F;

  Comparison compared(const StorageFormat& format = bf16_format, const RowPlace& place = {}) const {
    Checker checker(format);
    checker.row(place,
                {.output = output,
                 .magnitude = magnitude,
                 .spread = spread,
                 .score = score,
                 .lse = lse,
                 .largest = largest,
                 .mass = mass},
                {.output = result, .lse = result_lse});
    return checker.comparison();
  }
};

TEST(Checker, TheExactAnswerPasses) {
  const Comparison comparison = Case().compared();
  EXPECT_EQ(comparison.wrong(), "");
  EXPECT_EQ(comparison.rows, 1);
  EXPECT_EQ(comparison.compared, 64);
  EXPECT_EQ(comparison.max_error, 0);
  EXPECT_EQ(comparison.not_finite_exact, 0);
}

// Half an ulp of 1.25 in bf16_format is 2⁻⁸, the weights may leave 2 · 2⁻⁸; scores of 1 add a trifle, and there is
// 1e-5.
TEST(Checker, AnElementHasItsOwnBound) {
  Case one;
  const double bound = 3 * 0x1p-8 + 1e-5;
  one.result[7] = static_cast<float>(1.25 + bound * 0.9999);
  EXPECT_EQ(one.compared().elements_beyond, 0);
  one.result[7] = static_cast<float>(1.25 + bound * 1.001);
  const Comparison comparison = one.compared(bf16_format, {.sequence = 2, .token = 5, .head = 3});
  EXPECT_EQ(comparison.elements_beyond, 1);
  EXPECT_FALSE(comparison.passed());
  EXPECT_THAT(comparison.wrong(), HasSubstr("first difference at sequence 2, token 5, head 3, dim 7: 1.26"));
  EXPECT_THAT(comparison.wrong(), HasSubstr(" instead of 1.25, bound 0.0117"));
}

// Weights of which one is off by 2⁻⁴ at most, and their sum by as much: (2 + 1.25) · 2⁻⁴, half an ulp of O, which is
// rounded to four bits here as well, and the score's trifle. An LSE may be off by −ln (1 − 2⁻⁴), and by no more without
// such weights.
TEST(Checker, SumsOfRoundedWeightsHaveTheirOwnBound) {
  Case one;
  one.mass = 1;
  const double bound = (3.25 + 1) * 0x1p-4 + 1e-5;
  one.result[7] = static_cast<float>(1.25 + bound * 0.9999);
  EXPECT_EQ(one.compared(e4m3_weights).elements_beyond, 0);
  one.result[7] = static_cast<float>(1.25 + bound * 1.001);
  EXPECT_EQ(one.compared(e4m3_weights).elements_beyond, 1);
  one.result[7] = 1.25F;
  one.result_lse = 3.0645F;
  EXPECT_EQ(one.compared(e4m3_weights).wrong(), "");
  EXPECT_EQ(one.compared(bf16_format).lse_beyond, 1);
  one.result_lse = 3.0646F;
  EXPECT_EQ(one.compared(e4m3_weights).lse_beyond, 1);
}

// A large row does not widen the bound of a small one.
TEST(Checker, RowsDoNotShareABound) {
  Case large;
  for (double& x : large.output) x = 1000;
  for (float& x : large.result) x = 1000;
  Case small;
  small.result[0] += 0.05F;
  Checker checker(bf16_format);
  for (const Case* one : {&large, &small}) {
    checker.row({.token = one == &small ? 1 : 0},
                {.output = one->output, .magnitude = one->magnitude, .spread = 4, .score = 1, .lse = 3},
                {.output = one->result, .lse = {}});
  }
  EXPECT_THAT(checker.comparison().wrong(), HasSubstr("token 1, head 0, dim 0"));
}

// Every element within its bound, yet all of them off together: √((1 + 1.25² · 64 / 64) · 2⁻¹⁶ / 3) is expected.
TEST(Checker, ARowHasAnRmsError) {
  const double expected = std::sqrt((1 + std::max(4.0 / 64, 1.25 * 1.25)) / 3) * 0x1p-8;
  Case one;
  for (std::size_t d = 0; d < 64; ++d)
    one.result[d] += static_cast<float>((d % 2 == 0 ? 1 : -1) * expected * row_rms_limit * 0.999);
  EXPECT_EQ(one.compared().wrong(), "");
  for (std::size_t d = 0; d < 64; ++d)
    one.result[d] = 1.25F + static_cast<float>((d % 2 == 0 ? 1 : -1) * expected * row_rms_limit * 1.001);
  const Comparison comparison = one.compared();
  EXPECT_EQ(comparison.elements_beyond, 0);
  EXPECT_EQ(comparison.rows_beyond, 1);
  EXPECT_THAT(comparison.wrong(), HasSubstr("1 rows out of bound by RMS or cosine; first difference at sequence 0, "
                                            "token 0, head 0: RMS error 0.0"));
}

// Values that nearly cancel: what 1e-5 admits an element, the row's direction does not.
TEST(Checker, ARowHasADirection) {
  Case one;
  for (double& x : one.output) x = 1e-6;
  for (double& x : one.magnitude) x = 1e-6;
  one.spread = 64e-12;
  for (std::size_t d = 0; d < 64; ++d) one.result[d] = d % 2 == 0 ? 1e-6F : -1e-6F;
  const Comparison comparison = one.compared();
  EXPECT_EQ(comparison.elements_beyond, 0);
  EXPECT_FALSE(comparison.passed());
  EXPECT_NEAR(comparison.least_cosine, 0, 1e-6);
}

// 1e-5, half an ulp of 3 in float32 (2⁻²³), and 16 roundings of scores of 1 (2⁻²⁰).
TEST(Checker, LseHasItsOwnBound) {
  Case one;
  one.result_lse = 3.0F + 9e-6F;
  EXPECT_EQ(one.compared().wrong(), "");
  one.result_lse = 3.0F + 1.2e-5F;
  EXPECT_THAT(one.compared().wrong(),
              HasSubstr("1 LSE rows out of bound; first difference at sequence 0, token 0, head "
                        "0, LSE: 3.0000"));
  one.lse = 3000;
  one.score = 3000;
  one.result_lse = 3000.002F;
  EXPECT_EQ(one.compared().wrong(), "");
  one.result_lse = 3000.004F;
  EXPECT_NE(one.compared().wrong(), "");
}

// What fp32 leaves of large scores admits much, but not the answer of a row that sees nothing.
TEST(Checker, LargeScoresAdmitNoRowOfZeros) {
  for (const double score : {1e6, 1e8, 1.8e8}) {
    Case one;
    one.score = score;
    one.largest = score * 1.4427;
    one.lse = score;
    one.result_lse.reset();
    EXPECT_EQ(one.compared().wrong(), "") << score;
    for (float& x : one.result) x = 0;
    EXPECT_FALSE(one.compared().passed()) << score;
  }
}

// Beyond their limit nothing is promised: such a row is counted, and never passes for a compared one.
TEST(Checker, RowsBeyondTheLimitOfScoresAreCounted) {
  Case beyond;
  beyond.largest = score_limit;
  for (float& x : beyond.result) x = 0;
  beyond.result_lse = -static_cast<float>(infinity);
  const Case good;
  Checker checker(bf16_format);
  for (const Case* each : {static_cast<const Case*>(&beyond), &good}) {
    checker.row({},
                {.output = each->output,
                 .magnitude = each->magnitude,
                 .spread = 4,
                 .score = 1,
                 .lse = each->lse,
                 .largest = each->largest},
                {.output = each->result, .lse = each->result_lse});
  }
  EXPECT_EQ(checker.comparison().wrong(), "");
  EXPECT_EQ(checker.comparison().rows_beyond_limit, 1);
  EXPECT_EQ(checker.comparison().compared, 64);
  EXPECT_THAT(checker.comparison().text(), HasSubstr("1 of 2 rows not compared, because they have scores of 2^28"));
  EXPECT_THAT(beyond.compared().wrong(), HasSubstr("nothing was compared; 1 of 1 rows not compared"));
  beyond.largest = score_limit * 0.999;
  EXPECT_FALSE(beyond.compared().passed());
}

TEST(Checker, MinusInfinityMustBeExact) {
  Case one;
  for (double& x : one.output) x = 0;
  for (double& x : one.magnitude) x = 0;
  for (float& x : one.result) x = 0;
  one.spread = 0;
  one.score = 0;
  one.lse = -infinity;
  one.result_lse = -static_cast<float>(infinity);
  const Comparison comparison = one.compared();
  EXPECT_EQ(comparison.wrong(), "");
  EXPECT_EQ(comparison.not_finite_exact, 0) << "a row without keys has an LSE like any other";
  for (const float wrong : {-1e30F, static_cast<float>(infinity), nan}) {
    one.result_lse = wrong;
    EXPECT_EQ(one.compared().lse_beyond, 1) << wrong;
  }
  one.lse = 3;
  one.result_lse = -static_cast<float>(infinity);
  EXPECT_EQ(one.compared().lse_beyond, 1);
}

// A row that sees no key is 0, and no 1e-5 helps it.
TEST(Checker, RowsWithoutKeysAreZero) {
  Case one;
  for (double& x : one.output) x = 0;
  for (double& x : one.magnitude) x = 0;
  one.spread = 0;
  for (float& x : one.result) x = 1e-6F;
  for (const StorageFormat& format : {fp16_format, bf16_format}) EXPECT_FALSE(one.compared(format).passed());
}

TEST(Checker, WhatIsNotFiniteIsCountedOnBothSides) {
  for (const double wrong : {static_cast<double>(nan), infinity, -infinity}) {
    Case one;
    one.result[3] = static_cast<float>(wrong);
    Comparison comparison = one.compared();
    EXPECT_EQ(comparison.not_finite_result, 1);
    EXPECT_EQ(comparison.max_error, infinity);
    EXPECT_THAT(comparison.wrong(), HasSubstr("not finite: 0 of the exact answer, 1 of the result"));
    one.output[3] = wrong;
    comparison = one.compared();
    EXPECT_EQ(comparison.not_finite_exact, 1);
    EXPECT_EQ(comparison.wrong(), "") << "63 elements were compared";
    one.result[3] = 1;
    EXPECT_FALSE(one.compared().passed()) << "a number where there is none";
  }
}

TEST(Checker, AResultThatIsAllNanNeverPasses) {
  Case one;
  one.result.assign(64, nan);
  one.result_lse = nan;
  EXPECT_FALSE(one.compared().passed());
  one.output.assign(64, nan);
  one.lse = nan;
  const Comparison comparison = one.compared();
  EXPECT_EQ(comparison.elements_beyond, 0);
  EXPECT_THAT(comparison.wrong(), HasSubstr("nothing finite was compared"));
  EXPECT_THAT(comparison.wrong(), HasSubstr("not finite: 65 of the exact answer, 65 of the result"));
  // One row of numbers beside it, and the verdict is about that one.
  Checker checker(bf16_format);
  const Case good;
  for (const Case* each : {static_cast<const Case*>(&one), &good}) {
    checker.row({}, {.output = each->output, .magnitude = each->magnitude, .spread = 4, .score = 1, .lse = each->lse},
                {.output = each->result, .lse = each->result_lse});
  }
  EXPECT_EQ(checker.comparison().wrong(), "");
  EXPECT_THAT(checker.comparison().text(), HasSubstr("not finite: 65 of the exact answer, 65 of the result"));
}

}  // namespace
}  // namespace wavejit::tools
