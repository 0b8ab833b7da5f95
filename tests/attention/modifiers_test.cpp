// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Score modifiers and sinks against float64, alone and together, on every pipeline, with the same bits in all of them.
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
  AttentionCase make(int batch, int queries, int keys, bool causal, std::uint64_t seed, double spread = 1) const {
    return make_case(storage(), batch, queries, keys, 2, 1, head_dim(), causal, seed, spread);
  }
  Pipelines pipelines_{std::get<0>(GetParam())};
};

// Every combination, with the masks and broadcasts in turn.
TEST_P(AttentionModifiers, MatchFloat64AloneAndTogether) {
  for (int set = 1; set < 8; ++set) {
    if (!in_part(set, 2)) continue;
    const bool softcap = (set & 1) != 0;
    const bool bias = (set & 2) != 0;
    const bool alibi = (set & 4) != 0;
    const int batch = 1 + set % 2;
    const int queries = set % 3 == 0 ? 33 : 65;
    AttentionCase which = make(batch, queries, 60 + 23 * set, set % 3 == 1, 50 + set);
    which.layout = static_cast<Layout>(set % 3);
    if (set % 3 == 2) {
      which.inputs.window = true;
      which.inputs.window_left = 40;
      which.inputs.window_right = 9;
    }
    if (softcap) which.inputs.softcap = 1.5;
    if (bias) add_bias(which, set % 4 == 2 ? batch : 1, set < 4 ? 2 : 1, 1, 70 + set);
    if (alibi) add_alibi(which, batch);
    SCOPED_TRACE(std::format("softcap {} bias {} alibi {}", softcap, bias, alibi));
    pipelines_.check(which);
  }
}

// Elements of hidden keys and of the padding (support/attention_run.cpp) never matter.
TEST_P(AttentionModifiers, BiasOfHiddenKeysIsNotANumber) {
  AttentionCase which = make(1, 45, 77, true, 61);
  add_bias(which, 1, 2, 1, 62);
  for (int h = 0; h < 2; ++h)
    for (int i = 0; i < 45; ++i)
      for (int j = i + 77 - 45 + 1; j < 77; ++j)
        which.inputs.bias[(std::size_t(h) * 45 + i) * 77 + j] = std::numeric_limits<float>::quiet_NaN();
  pipelines_.check(which);
}

// −inf hides a key, a row of them everything.
TEST_P(AttentionModifiers, BiasOfMinusInfinityHides) {
  AttentionCase which = make(1, 40, 130, false, 63);
  add_bias(which, 1, 1, 1, 64);
  for (int i = 0; i < 40; ++i)
    for (int j = 0; j < 130; ++j)
      if (i == 7 || (i + j) % 3 == 0 || j < 64)
        which.inputs.bias[std::size_t(i) * 130 + j] = -std::numeric_limits<float>::infinity();
  pipelines_.check(which);
}

// Frameworks hide keys by the least finite number of a type. That is a number: beside any other it weighs nothing, and
// a row of nothing else has weights and a finite LSE. In bf16 and fp32 it swallows every score: O is the mean of V.
TEST_P(AttentionModifiers, BiasOfTheLeastFiniteNumberIsANumber) {
  for (const bool fp32 : {false, true}) {
    SCOPED_TRACE(fp32 ? "bias in fp32" : "bias in the type of q");
    const bool swallows = fp32 || storage() == Storage::bf16;
    const float of_type = storage() == Storage::bf16 ? -0x1.FEp127F : -65504.0F;
    const float least = fp32 ? -std::numeric_limits<float>::max() : of_type;
    AttentionCase which = make(1, 40, 130, false, 65);
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

// Some rows of a wave are rescaled, others not, over many tiles.
TEST_P(AttentionModifiers, BiasThatMakesMaximaJump) {
  AttentionCase which = make(1, 66, 400, false, 72);
  add_bias(which, 1, 1, 12, 73);
  for (int i = 0; i < 66; i += 3)
    for (int j = 0; j < 400; ++j) which.inputs.bias[std::size_t(i) * 400 + j] = static_cast<float>(10 * (j >> 6));
  pipelines_.check(which);
}

// Scores far beyond the cap reach ±cap and no further; a score of 0 stays 0.
TEST_P(AttentionModifiers, SoftcapSaturates) {
  AttentionCase which = make(1, 34, 100, false, 65, 40);
  which.inputs.softcap = 20;
  pipelines_.check(which);
  which = make(1, 34, 100, false, 66);
  which.inputs.softcap = 1e-3;
  pipelines_.check(which);
}

TEST_P(AttentionModifiers, AnyScale) {
  for (const float scale : {0.0F, -0.25F, 1.0F}) {
    SCOPED_TRACE(std::format("scale {}", scale));
    AttentionCase which = make(1, 35, 97, true, 67);
    which.inputs.scale = scale;
    which.inputs.softcap = 3;
    add_alibi(which, 1);
    pipelines_.check(which);
    which.inputs.softcap = 0;
    add_bias(which, 1, 2, 1, 68);
    pipelines_.check(which);
  }
}

TEST_P(AttentionModifiers, SinksTakeTheirShare) {
  for (const double center : {-3.0, 0.0, 6.0, 60.0}) {
    SCOPED_TRACE(std::format("sink {}", center));
    AttentionCase which = make(1, 37, 90, true, 69);
    add_sink(which, center);
    if (center == 0) add_alibi(which, 1);
    pipelines_.check(which);
  }
}

// More queries than keys: the first rows see nothing.
TEST_P(AttentionModifiers, SinkOfARowThatSeesNothing) {
  AttentionCase which = make(1, 70, 40, true, 70);
  add_sink(which, 1.25);
  const AttentionOutput output = pipelines_.check(which);
  for (int h = 0; h < 2; ++h) {
    for (int row = 0; row < 30; ++row) {
      EXPECT_EQ(output.lse[std::size_t(h) * 70 + row], which.inputs.sink[h]);
      for (int c = 0; c < head_dim(); ++c) ASSERT_EQ(output.o[(std::size_t(row) * 2 + h) * head_dim() + c], 0);
    }
  }
}

TEST_P(AttentionModifiers, SinkOfMinusInfinityIsNone) {
  AttentionCase which = make(1, 50, 40, true, 71);
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
