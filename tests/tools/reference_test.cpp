// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention/program/reference.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <numbers>
#include <vector>

#include "tool_test_support.h"

namespace wavejit::attention::program {
namespace {

Array array_of(const Shape& shape, const std::vector<float>& values, HalfType type = HalfType::fp16) {
  Array array{.shape = shape, .values = {}};
  for (const float value : values) array.values.push_back(encode(type, value));
  return array;
}

// Small enough to do by hand: weights 1/4 and 3/4, because exp(ln 3) is 3.
TEST(ReferenceTest, ByHand) {
  const Array q = array_of({1, 1, 1, 1}, {1});
  const Array k = array_of({1, 2, 1, 1}, {0, 1});
  const Array v = array_of({1, 2, 1, 1}, {8, 16});
  const AttentionArrays problem{.q = &q, .k = &k, .v = &v, .scale = std::log(3.0F)};
  const auto exact = exact_attention(problem);
  EXPECT_NEAR(exact.output[0], 14, 1e-6);
  EXPECT_NEAR(exact.lse[0], std::log(4.0), 1e-6);
}

// Bottom-right: two queries on four keys see three and four; four queries on two keys see none, none, one and two.
TEST(ReferenceTest, CausalIsAlignedBottomRight) {
  const auto seen = [](std::int64_t queries, std::int64_t keys) {
    const Array q = array_of({1, queries, 1, 1}, std::vector<float>(static_cast<std::size_t>(queries), 0));
    const Array k = array_of({1, keys, 1, 1}, std::vector<float>(static_cast<std::size_t>(keys), 0));
    const AttentionArrays problem{.q = &q, .k = &k, .v = &k, .scale = 1, .mask = mask_of(WAVEJIT_MASK_CAUSAL)};
    std::vector<double> counts;
    for (const double lse : exact_attention(problem).lse) counts.push_back(std::exp(lse));
    return counts;
  };
  const auto wide = seen(2, 4);
  EXPECT_NEAR(wide[0], 3, 1e-12);
  EXPECT_NEAR(wide[1], 4, 1e-12);
  const auto tall = seen(4, 2);
  EXPECT_EQ(tall[0], 0);
  EXPECT_EQ(tall[1], 0);
  EXPECT_NEAR(tall[2], 1, 1e-12);
  EXPECT_NEAR(tall[3], 2, 1e-12);
}

TEST(ReferenceTest, NoKeysGiveZeroAndMinusInfinity) {
  const Array q = array_of({1, 2, 1, 2}, {1, 2, 3, 4});
  const Array none = array_of({1, 0, 1, 2}, {});
  const auto exact = exact_attention({.q = &q, .k = &none, .v = &none});
  EXPECT_EQ(exact.output, (std::vector<double>{0, 0, 0, 0}));
  EXPECT_EQ(exact.lse[1], -std::numeric_limits<double>::infinity());
}

// Query head h reads kv head h / (heads / kv heads).
TEST(ReferenceTest, GroupedHeads) {
  const Array q = array_of({1, 1, 4, 1}, {0, 0, 0, 0});
  const Array k = array_of({1, 1, 2, 1}, {0, 0});
  const Array v = array_of({1, 1, 2, 1}, {5, 7});
  EXPECT_EQ(exact_attention({.q = &q, .k = &k, .v = &v}).output, (std::vector<double>{5, 5, 7, 7}));
}

// One head of dimension 1 whose scores are the keys and whose values are 2^key number, so that sums tell who was seen.
class ExactRowsTest : public ::testing::Test {
 protected:
  ExactRows attend(const ScoreRules& rules, std::vector<float> scores, std::vector<std::int64_t> rows = {0}) {
    std::vector<float> values(scores.size());
    for (std::size_t key = 0; key < values.size(); ++key) values[key] = std::ldexp(1.0F, static_cast<int>(key));
    const std::vector<float> q(rows.size(), 1);
    return exact_rows({.rules = rules,
                       .head_dim_qk = 1,
                       .head_dim_v = 1,
                       .keys = scores.size(),
                       .rows = rows,
                       .q = q,
                       .k = scores,
                       .v = values,
                       .bias = bias_,
                       .least_weight = least_weight_});
  }
  double least_weight_ = 0;
  std::function<double(std::int64_t, std::int64_t)> bias_;
};

TEST_F(ExactRowsTest, WindowsAndDiagonalsHideKeys) {
  ScoreRules rules;
  rules.position = 2;
  rules.window_left = 1;
  rules.window_right = 2;
  // Row 0 stands at key 2 and sees 1 … 4; row 4 stands at 6 and sees 5 … 7; row 9 nothing.
  const auto exact = attend(rules, std::vector<float>(8), {0, 4, 9});
  EXPECT_NEAR(exact.output[0], (2 + 4 + 8 + 16) / 4.0, 1e-12);
  EXPECT_NEAR(exact.output[1], (32 + 64 + 128) / 3.0, 1e-12);
  EXPECT_EQ(exact.output[2], 0);
  EXPECT_EQ(exact.lse[2], -std::numeric_limits<double>::infinity());
  rules.diagonal = 2;  // and no key after its own
  EXPECT_NEAR(attend(rules, std::vector<float>(8)).output[0], (2 + 4) / 2.0, 1e-12);
}

// What a limit is for: of the keys that a row sees, in powers of two, and only where nothing modifies scores.
TEST_F(ExactRowsTest, TheLargestScoreThatARowSees) {
  ScoreRules rules;
  rules.scale = -2;
  rules.diagonal = 1;  // row 0 sees keys 0 and 1
  const float infinite = std::numeric_limits<float>::infinity();
  const auto exact = attend(rules, {3, -5, 100, 7}, {0, 1});
  EXPECT_NEAR(exact.largest[0], 10 / std::log(2.0), 1e-9);
  EXPECT_NEAR(exact.largest[1], 200 / std::log(2.0), 1e-9);
  EXPECT_NEAR(attend(rules, {3, infinite}).largest[0], 6 / std::log(2.0), 1e-9) << "what is infinite is no number";
  rules.slope = 1;
  EXPECT_EQ(attend(rules, {3, -5}).largest[0], 0);
  rules.slope = 0;
  bias_ = [](std::int64_t, std::int64_t) { return 1.0; };
  EXPECT_EQ(attend(rules, {3, -5}).largest[0], 0);
}

// Weights 1 and 2⁻¹⁰ of values 1 and 2, where a weight counts a quarter of the largest or more; a key that is hidden
// counts nothing.
TEST_F(ExactRowsTest, SmallWeightsCountAsTheLeast) {
  ScoreRules rules;
  rules.diagonal = 1;
  const std::vector<float> scores = {0, -10 * std::numbers::ln2_v<float>, 0};
  const auto plain = attend(rules, scores);
  EXPECT_EQ(plain.mass[0], 0);
  least_weight_ = 0.25;
  const auto raised = attend(rules, scores);
  EXPECT_EQ(raised.output, plain.output);
  EXPECT_EQ(raised.lse, plain.lse);
  const double sum = 1 + 0x1p-10;
  EXPECT_NEAR(raised.mass[0], 1.25 / sum, 1e-6);
  EXPECT_NEAR(raised.magnitude[0], 1.5 / sum, 1e-6);
  EXPECT_NEAR(raised.spread[0], (1 + 0.0625 * 4) / (sum * sum), 1e-6);
}

TEST_F(ExactRowsTest, SoftcapBiasSlopeAndSink) {
  ScoreRules rules;
  rules.softcap = 2;
  EXPECT_NEAR(attend(rules, {5}).lse[0], 2 * std::tanh(2.5), 1e-12);
  rules = {};
  rules.slope = 0.5;
  rules.position = 1;
  EXPECT_NEAR(attend(rules, {0, 0, 0}).lse[0], std::log(1 + 2 * std::exp(-0.5)), 1e-12);
  rules = {};
  rules.sink = std::log(3.0);
  const auto sunk = attend(rules, {0});
  EXPECT_NEAR(sunk.output[0], 0.25, 1e-12);
  EXPECT_NEAR(sunk.lse[0], std::log(4.0), 1e-12);
  bias_ = [](std::int64_t row, std::int64_t key) { return row == 7 && key == 1 ? std::log(3.0) : 0.0; };
  EXPECT_NEAR(attend({}, {0, 0}, {7}).output[0], (1 + 3 * 2) / 4.0, 1e-12);
  bias_ = [](std::int64_t, std::int64_t) { return -std::numeric_limits<double>::infinity(); };
  EXPECT_EQ(attend({}, {0, 0}).output[0], 0);
}

// More rows and keys than any block of the loops holds, none of them a multiple, against sums written out plainly.
TEST_F(ExactRowsTest, BlocksDoNotShow) {
  const std::size_t keys = 300;
  const std::size_t count = 71;
  const std::size_t dim = 13;
  const auto k = normal_values({1, static_cast<std::int64_t>(keys), 1, static_cast<std::int64_t>(dim)}, 1);
  auto v = normal_values({1, static_cast<std::int64_t>(keys), 1, static_cast<std::int64_t>(dim)}, 2);
  const auto q = normal_values({1, static_cast<std::int64_t>(count), 1, static_cast<std::int64_t>(dim)}, 3);
  std::vector<std::int64_t> rows;
  for (std::size_t row = 0; row < count; ++row) rows.push_back(static_cast<std::int64_t>(3 * row));
  v[299 * dim] = std::numeric_limits<float>::quiet_NaN();  // only rows 209 and later see the last key
  ScoreRules rules;
  rules.scale = 0.7;
  rules.diagonal = 90;
  const auto exact = exact_rows({.rules = rules,
                                 .head_dim_qk = dim,
                                 .head_dim_v = dim,
                                 .keys = keys,
                                 .rows = rows,
                                 .q = q,
                                 .k = k,
                                 .v = v,
                                 .bias = {}});
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t seen = std::min<std::size_t>(keys, 3 * i + 91);
    std::vector<double> sums(dim);
    double total = 0;
    for (std::size_t key = 0; key < seen; ++key) {
      double score = 0;
      for (std::size_t d = 0; d < dim; ++d) score += static_cast<double>(q[i * dim + d]) * k[key * dim + d];
      const double weight = std::exp(0.7 * score);
      total += weight;
      for (std::size_t d = 0; d < dim; ++d) sums[d] += weight * v[key * dim + d];
    }
    EXPECT_NEAR(exact.lse[i], std::log(total), 1e-10);
    for (std::size_t d = 0; d < dim; ++d) {
      if (d == 0 && seen == keys) {
        EXPECT_TRUE(std::isnan(exact.output[i * dim]));
      } else {
        EXPECT_NEAR(exact.output[i * dim + d], sums[d] / total, 1e-10) << i << ' ' << d;
      }
    }
  }
}

// The checker's own tests are tests/templates/attention_forward's; here, that each number meets its own exact one.
class ComparedArraysTest : public ::testing::Test {
 protected:
  Shape shape_ = {2, 5, 2, 8};
  Array q_ = array_of(shape_, normal_values(shape_, 1));
  Array k_ = array_of(shape_, normal_values(shape_, 2));
  Array v_ = array_of(shape_, normal_values(shape_, 3));
  AttentionArrays problem_{.q = &q_, .k = &k_, .v = &v_, .scale = 0.3F};
  ExactAttention exact_ = exact_attention(problem_);
  std::vector<float> lse_{exact_.lse.begin(), exact_.lse.end()};

  std::vector<float> rounded_output() {
    std::vector<float> output;
    for (const double value : exact_.output) output.push_back(static_cast<float>(rounded(HalfType::fp16, value)));
    return output;
  }
};

TEST_F(ComparedArraysTest, TheRoundedAnswerPasses) {
  const auto comparison = compare_rows(problem_, exact_, rounded_output(), lse_);
  EXPECT_EQ(comparison.wrong(), "");
  EXPECT_EQ(comparison.rows, 20);
  EXPECT_EQ(comparison.compared, 160);
  EXPECT_GT(comparison.max_error, 0);
  EXPECT_GT(comparison.of_bound, 0);
}

TEST_F(ComparedArraysTest, AnErrorBeyondTheBoundFailsAndIsLocated) {
  auto output = rounded_output();
  output[((1 * 5 + 3) * 2 + 1) * 8 + 6] += 0.01F;
  EXPECT_THAT(compare_rows(problem_, exact_, output, lse_).wrong(),
              ::testing::HasSubstr("first difference at sequence 1, token 3, head 1, dim 6: "));
  // [batch 0][head 1][token 2]
  lse_[7] += 0.001F;
  EXPECT_THAT(compare_rows(problem_, exact_, rounded_output(), lse_).wrong(),
              ::testing::HasSubstr("first difference at sequence 0, token 2, head 1, LSE: "));
  EXPECT_EQ(compare_rows(problem_, exact_, rounded_output(), {}).wrong(), "");
}

// Two keys of equal weight whose values cancel: the answer is 0, yet rounding P may leave half an ulp of Σ p·|v| = 1.
TEST(ComparedArrays, RoundingsOfTheWeightsAreAllowedWhereValuesCancel) {
  const Array q = array_of({1, 1, 1, 1}, {0});
  const Array k = array_of({1, 2, 1, 1}, {0, 0});
  const Array v = array_of({1, 2, 1, 1}, {1, -1});
  const AttentionArrays problem{.q = &q, .k = &k, .v = &v};
  const ExactAttention exact = exact_attention(problem);
  EXPECT_EQ(exact.output, std::vector<double>{0});
  EXPECT_EQ(exact.magnitude, std::vector<double>{1});
  EXPECT_EQ(exact.spread, std::vector<double>{0.5});
  EXPECT_TRUE(compare_rows(problem, exact, std::vector{0x1p-12F}, {}).passed());
  EXPECT_FALSE(compare_rows(problem, exact, std::vector{0x1p-10F}, {}).passed());
}

TEST_F(ComparedArraysTest, RowsWithoutKeysMustBeMinusInfinity) {
  const Array none = array_of({2, 0, 2, 8}, {});
  const AttentionArrays problem{.q = &q_, .k = &none, .v = &none};
  const auto exact = exact_attention(problem);
  const std::vector<float> zeros(160, 0.0F);
  std::vector<float> lse(20, -std::numeric_limits<float>::infinity());
  EXPECT_EQ(compare_rows(problem, exact, zeros, lse).wrong(), "");
  lse[3] = -1e30F;
  EXPECT_FALSE(compare_rows(problem, exact, zeros, lse).passed());
}

}  // namespace
}  // namespace wavejit::attention::program
