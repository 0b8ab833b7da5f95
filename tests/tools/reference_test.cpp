#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tool_test_support.h"
#include "tools/attention_reference.h"

namespace wavejit::tools {
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
  const AttentionProblem problem{.q = &q, .k = &k, .v = &v, .scale = std::log(3.0F)};
  const auto exact = exact_attention(problem);
  EXPECT_NEAR(exact.output[0], 14, 1e-6);
  EXPECT_NEAR(exact.lse[0], std::log(4.0), 1e-6);
}

// Bottom-right: two queries on four keys see three and four; four queries on two keys see none, none, one and two.
TEST(ReferenceTest, CausalIsAlignedBottomRight) {
  const auto seen = [](std::int64_t queries, std::int64_t keys) {
    const Array q = array_of({1, queries, 1, 1}, std::vector<float>(static_cast<std::size_t>(queries), 0));
    const Array k = array_of({1, keys, 1, 1}, std::vector<float>(static_cast<std::size_t>(keys), 0));
    const AttentionProblem problem{.q = &q, .k = &k, .v = &k, .scale = 1, .causal = true};
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

class AccuracyTest : public ::testing::Test {
 protected:
  Shape shape_ = {2, 5, 2, 8};
  Array q_ = array_of(shape_, normal_values(shape_, 1));
  Array k_ = array_of(shape_, normal_values(shape_, 2));
  Array v_ = array_of(shape_, normal_values(shape_, 3));
  AttentionProblem problem_{.q = &q_, .k = &k_, .v = &v_, .scale = 0.3F};
  ExactAttention exact_ = exact_attention(problem_);

  std::vector<float> rounded_output() {
    std::vector<float> output;
    for (const double value : exact_.output) output.push_back(static_cast<float>(rounded(HalfType::fp16, value)));
    return output;
  }
};

TEST_F(AccuracyTest, TheRoundedAnswerPassesAtTheCostOfRounding) {
  const Accuracy accuracy = compare_output(problem_, exact_, rounded_output());
  EXPECT_TRUE(accuracy.passed);
  EXPECT_EQ(accuracy.max_error, accuracy.rounding_error);
  EXPECT_GT(accuracy.bound, 2 * accuracy.rounding_error);
}

TEST_F(AccuracyTest, AnErrorBeyondTheBoundFailsAndIsLocated) {
  auto output = rounded_output();
  const std::size_t at = ((1 * 5 + 3) * 2 + 1) * 8 + 6;
  output[at] += 0.01F;
  const Accuracy accuracy = compare_output(problem_, exact_, output);
  EXPECT_FALSE(accuracy.passed);
  EXPECT_EQ(accuracy.where, "[1, 3, 1, 6]");
}

// Two keys of equal weight whose values cancel: the answer is 0, yet rounding P may leave half an ulp of Σ p·|v| = 1.
TEST(AccuracyOfCancellingValues, RoundingsOfTheWeightsAreAllowed) {
  const Array q = array_of({1, 1, 1, 1}, {0});
  const Array k = array_of({1, 2, 1, 1}, {0, 0});
  const Array v = array_of({1, 2, 1, 1}, {1, -1});
  const AttentionProblem problem{.q = &q, .k = &k, .v = &v};
  const ExactAttention exact = exact_attention(problem);
  EXPECT_EQ(exact.output, std::vector<double>{0});
  EXPECT_EQ(exact.magnitude, std::vector<double>{1});
  EXPECT_TRUE(compare_output(problem, exact, {0x1p-11F}).passed);
  EXPECT_FALSE(compare_output(problem, exact, {0x1p-10F}).passed);
}

TEST_F(AccuracyTest, NanAndInfinityFail) {
  for (const float wrong : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    auto output = rounded_output();
    output[17] = wrong;
    EXPECT_FALSE(compare_output(problem_, exact_, output).passed);
  }
}

TEST_F(AccuracyTest, LseWithinOneTenThousandth) {
  std::vector<float> lse(exact_.lse.begin(), exact_.lse.end());
  EXPECT_TRUE(compare_lse(problem_, exact_, lse).passed);
  lse[7] += 0.001F;
  const Accuracy accuracy = compare_lse(problem_, exact_, lse);
  EXPECT_FALSE(accuracy.passed);
  EXPECT_EQ(accuracy.where, "[0, 1, 2]");
}

TEST_F(AccuracyTest, RowsWithoutKeysMustBeMinusInfinity) {
  const Array none = array_of({2, 0, 2, 8}, {});
  const AttentionProblem problem{.q = &q_, .k = &none, .v = &none};
  const auto exact = exact_attention(problem);
  std::vector<float> lse(20, -std::numeric_limits<float>::infinity());
  EXPECT_TRUE(compare_lse(problem, exact, lse).passed);
  lse[3] = -1e30F;
  EXPECT_FALSE(compare_lse(problem, exact, lse).passed);
}

}  // namespace
}  // namespace wavejit::tools
