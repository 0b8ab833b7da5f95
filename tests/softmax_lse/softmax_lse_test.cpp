// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// softmax_lse on the simulated GPU: infinities and NaN, attention's bits, and none that show how rows lie. Against float64 it
// is rows of value_rows.txt.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "softmax_lse/softmax_run.h"
#include "templates/attention/kernel/canon.h"
#include "templates/attention_forward/kernel/arguments.h"
#include "templates/attention_forward/kernel/spec.h"

namespace wavejit::tests {
namespace {

using softmax_lse::DataType;
using ::testing::HasSubstr;

class SoftmaxLse : public ::testing::TestWithParam<const char*> {
 protected:
  SoftmaxOutput run(const SoftmaxCase& which) {
    SoftmaxOutput output = run_softmax(engine_.get(), which);
    EXPECT_EQ(output.status, WAVEJIT_OK) << output.detail << output.reports;
    EXPECT_EQ(output.reports, "");
    EXPECT_TRUE(output.fence_intact) << "something outside the weights or LSE was written";
    return output;
  }

  Engine engine_{GetParam()};
};

std::vector<std::uint32_t> bits(const std::vector<float>& values) {
  std::vector<std::uint32_t> of;
  of.reserve(values.size());
  for (const float value : values) of.push_back(std::bit_cast<std::uint32_t>(value));
  return of;
}

TEST_P(SoftmaxLse, InfiniteAndNanScores) {
  SoftmaxCase which = softmax_case(DataType::fp32, DataType::fp32, 3, 300, 92);
  const float infinity = std::numeric_limits<float>::infinity();
  for (std::size_t key = 0; key < 300; ++key) which.scores[key] = -infinity;
  for (std::size_t key = 300; key < 400; ++key) which.scores[key] = -infinity;
  which.scores[600 + 250] = std::numeric_limits<float>::quiet_NaN();
  const SoftmaxOutput output = run(which);
  EXPECT_EQ(output.lse[0], -infinity);
  EXPECT_EQ(output.weights[5], 0U);
  EXPECT_EQ(output.weights[305], 0U);
  EXPECT_TRUE(std::isfinite(output.lse[1]));
  EXPECT_TRUE(std::isnan(output.lse[2]));
  // Hidden, it does not matter.
  which.key_lengths = {250};
  EXPECT_EQ(wrong_softmax(which, run(which)), "");
}

// A row's bits are a function of its scores: not of its neighbours, of how it is read, nor of what stands behind it.
TEST_P(SoftmaxLse, BitsOfARowAreItsOwn) {
  const std::int64_t keys = 1030;
  const SoftmaxCase whole = softmax_case(DataType::bf16, DataType::bf16, 21, keys, 94, 4, 2, 2);
  const SoftmaxOutput together = run(whole);
  SoftmaxCase unaligned = whole;
  unaligned.lead = 9;
  unaligned.gap = 7;
  const SoftmaxOutput apart = run(unaligned);
  EXPECT_THAT(together.kernel_spec, HasSubstr("access=vectors"));
  EXPECT_THAT(apart.kernel_spec, HasSubstr("access=elements"));
  EXPECT_EQ(apart.weights, together.weights);
  EXPECT_EQ(bits(apart.lse), bits(together.lse));
  for (const std::size_t row : {0, 1, 20, 21, 50, 83}) {
    SCOPED_TRACE(row);
    const auto of_row = [&](const auto& all) {
      return std::vector(all.begin() + static_cast<std::ptrdiff_t>(row * keys),
                         all.begin() + static_cast<std::ptrdiff_t>((row + 1) * keys));
    };
    SoftmaxCase one = whole;
    one.batch = one.heads = one.rows = 1;
    one.scores = of_row(whole.scores);
    const SoftmaxOutput alone = run(one);
    EXPECT_EQ(alone.weights, of_row(together.weights));
    EXPECT_EQ(bits(alone.lse)[0], bits(together.lse)[row]);
    // In a row that is read in pieces, with keys behind that do not count.
    SoftmaxCase streamed = one;
    streamed.keys = 8300;
    streamed.key_lengths = {static_cast<std::int32_t>(keys)};
    streamed.scores.resize(8300, std::numeric_limits<float>::quiet_NaN());
    SoftmaxOutput longer = run(streamed);
    EXPECT_THAT(longer.kernel_spec, HasSubstr("rows=streamed"));
    longer.weights.resize(keys);
    EXPECT_EQ(longer.weights, alone.weights);
    EXPECT_EQ(bits(longer.lse), bits(alone.lse));
    // From fp32 scores of the same numbers, whose lanes hold other keys.
    SoftmaxCase wide = one;
    wide.type = DataType::fp32;
    const SoftmaxOutput of_wide = run(wide);
    EXPECT_EQ(of_wide.weights, alone.weights);
    EXPECT_EQ(bits(of_wide.lse), bits(alone.lse));
  }
}

// Where each key is one dim of the query, scores are exact: attention_forward's LSE, to the bit.
TEST_P(SoftmaxLse, HasTheLogSumExpOfAttention) {
  constexpr int head_dim = 64;
  for (const Storage storage : {Storage::fp16, Storage::bf16})
    for (const auto& [rows, keys, causal, scale] :
         {std::tuple{40, 100, false, 1.0F}, {3, 2500, false, 0.7F}, {70, 1100, true, -1.3F}, {1, 9001, true, 2.0F}}) {
      SCOPED_TRACE(std::to_string(keys) + " keys");
      AttentionCase attention = make_case(storage, 1, rows, keys, 1, 1, head_dim, causal, 95, 4);
      for (int key = 0; key < keys; ++key)
        for (int dim = 0; dim < head_dim; ++dim)
          attention.inputs.k[static_cast<std::size_t>(key * head_dim + dim)] = key * 7 % head_dim == dim ? 1.0F : 0.0F;
      attention.inputs.scale = scale;
      const AttentionOutput expected = run_attention(engine_.get(), attention);
      ASSERT_EQ(expected.status, WAVEJIT_OK) << expected.detail << expected.reports;
      for (const DataType type : {DataType::fp32, storage == Storage::bf16 ? DataType::bf16 : DataType::fp16}) {
        SoftmaxCase which = {.type = type, .weights = std::nullopt, .rows = rows, .keys = keys};
        for (int row = 0; row < rows; ++row)
          for (int key = 0; key < keys; ++key)
            which.scores.push_back(attention.inputs.q[static_cast<std::size_t>(row * head_dim + key * 7 % head_dim)]);
        which.scale = scale;
        which.causal = causal;
        EXPECT_EQ(bits(run(which).lse), bits(expected.lse));
      }
    }
}

INSTANTIATE_TEST_SUITE_P(Targets, SoftmaxLse, ::testing::Values("gfx942", "gfx950"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace wavejit::tests
