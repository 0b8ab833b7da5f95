// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A bias of the least finite number is a number, and a sink of −∞ is none. Other modifiers are rows of value_rows.txt.
#include <gtest/gtest.h>

#include <cmath>
#include <format>
#include <limits>
#include <string>
#include <tuple>

#include "attention/modified.h"
#include "support/part.h"

namespace wavejit::tests {
namespace {

using Combination = std::tuple<std::string, Storage, int>;

class AttentionModifiers : public ::testing::TestWithParam<Combination> {
 protected:
  Storage storage() const { return std::get<1>(GetParam()); }
  int head_dim() const { return std::get<2>(GetParam()); }
  AttentionCase make(int queries, int keys, bool causal, std::uint64_t seed) const {
    return make_case(storage(), 1, queries, keys, 2, 1, head_dim(), causal, seed);
  }
  Pipelines pipelines_{std::get<0>(GetParam())};
};

// Frameworks hide keys by the least finite number of a type. That is a number: beside any other it weighs nothing, and
// a row of nothing else has weights and a finite LSE. In bf16 and fp32 it swallows every score: O is the mean of V.
TEST_P(AttentionModifiers, BiasOfTheLeastFiniteNumberIsANumber) {
  for (const bool fp32 : {false, true}) {
    SCOPED_TRACE(fp32 ? "bias in fp32" : "bias in the type of q");
    const bool swallows = fp32 || storage() == Storage::bf16;
    const float of_type = storage() == Storage::bf16 ? -0x1.FEp127F : -65504.0F;
    const float least = fp32 ? -std::numeric_limits<float>::max() : of_type;
    AttentionCase which = make(40, 130, false, 65);
    add_bias(which, 1, 1, 1, 66);
    which.bias_fp32 = fp32;
    for (int i = 0; i < 40; ++i) {
      for (int j = 0; j < 130; ++j) {
        float& bias = which.inputs.bias[std::size_t(i) * 130 + j];
        if (i % 2 == 1 || (i + j) % 3 == 0 || j < 64) bias = least;
        if (i % 4 == 3 && j % 5 != 0) bias = -std::numeric_limits<float>::infinity();
      }
    }
    const AttentionOutput output = pipelines_.run(which);
    const auto exact = attention_reference(which.inputs);
    ASSERT_EQ(output.o.size(), exact.o.size());
    for (std::size_t i = 0; i < exact.o.size(); ++i) {
      ASSERT_NEAR(from_storage(storage(), output.o[i]), exact.o[i], 0.01 + (0.01 * std::abs(exact.o[i])))
          << "element " << i;
    }
    // Row 1 has nothing else: its sums of 130 values.
    for (int c = 0; swallows && c < head_dim(); ++c) {
      double sum = 0;
      for (int j = 0; j < 130; ++j) sum += double(which.inputs.v[(std::size_t(j) * head_dim()) + c]);
      ASSERT_NEAR(from_storage(storage(), output.o[std::size_t(2) * head_dim() + c]), sum / 130, 0.002) << c;
    }
    for (std::size_t i = 0; i < exact.lse.size(); ++i) {
      ASSERT_TRUE(std::isfinite(output.lse[i])) << "row " << i;
      if (swallows && i % 2 == 1) ASSERT_LT(output.lse[i], -2.3e38F) << "row " << i;
    }
  }
}

TEST_P(AttentionModifiers, SinkOfMinusInfinityIsNone) {
  AttentionCase which = make(50, 40, true, 71);
  const AttentionOutput without = pipelines_.run(which);
  which.inputs.sink.assign(2, -std::numeric_limits<float>::infinity());
  const AttentionOutput with = pipelines_.run(which);
  EXPECT_EQ(with.o, without.o);
  for (std::size_t i = 0; i < with.lse.size(); ++i)
    EXPECT_TRUE(with.lse[i] == without.lse[i] || std::fabs(with.lse[i] - without.lse[i]) < 1e-5) << i;
}

std::string name_of(const ::testing::TestParamInfo<Combination>& info) {
  const auto [target, storage, head_dim] = info.param;
  return std::format("{}_{}_d{}", target, storage == Storage::fp16 ? "fp16" : "bf16", head_dim);
}

INSTANTIATE_TEST_SUITE_P(All, AttentionModifiers,
                         ::testing::ValuesIn(half_of_combinations<std::string, Storage, int>(
                             {"gfx942", "gfx950"}, {Storage::fp16, Storage::bf16}, {64, 128})),
                         name_of);

}  // namespace
}  // namespace wavejit::tests
