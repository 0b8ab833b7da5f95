// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Q and K in int8: against float64, and where scores are exact in either way bit by bit against the same numbers in 16
// bits. All around the tensors is garbage.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <format>
#include <string>
#include <utility>
#include <vector>

#include "attention/modified.h"

namespace wavejit::tests {
namespace {

constexpr auto turned = Scattered::rows_inside;

// Few bits, so that an integer times its scale is a number of f32.
std::vector<float> scales_of(int count, float around) {
  std::vector<float> scales;
  for (int i = 0; i < count; ++i) scales.push_back(around * (1 + (0.125F * static_cast<float>(i % 7))));
  return scales;
}

enum class Scales : std::uint8_t { none, tensor, heads, tokens };
StoredIntegers integers_of(const AttentionCase& which, Scales q, Scales k) {
  const AttentionInputs& in = which.inputs;
  const auto make = [](Scales scales, int batches, int tokens, int heads) {
    if (scales == Scales::none) return RowScales{};
    RowScales made;
    if (scales == Scales::tokens) made.batches = batches, made.tokens = tokens;
    if (scales != Scales::tensor) made.heads = heads;
    made.numbers = scales_of(made.batches * made.tokens * made.heads, 1.0F / 32);
    return made;
  };
  return {.q = make(q, in.query_batches(), in.query_rows(), in.query_heads),
          .k = make(k, in.key_batches(), in.key_rows(), in.kv_heads)};
}

class Integers : public ::testing::TestWithParam<std::string> {
 protected:
  AttentionOutput run(const AttentionCase& which, const Schedule& schedule) {
    set_schedule(schedule.order, schedule.seed);
    AttentionOutput output = run_attention(engine_.get(), which);
    EXPECT_EQ(output.status, WAVEJIT_OK) << output.detail << output.reports;
    EXPECT_EQ(output.reports, "");
    EXPECT_TRUE(output.fence_intact) << "something outside O or LSE was written";
    return output;
  }
  // Under every schedule the same bits, within the bounds of float64.
  AttentionOutput check(const AttentionCase& which) {
    AttentionOutput first = run(which, schedules.front());
    EXPECT_TRUE(first.kernel_spec.contains(" qk=i8")) << first.kernel_spec;
    EXPECT_EQ(compare_rows(which, attention_reference(which.inputs), first).wrong(), "");
    for (const Schedule& schedule : schedules) expect_equal(run(which, schedule), first);
    return first;
  }
  static void expect_equal(const AttentionOutput& one, const AttentionOutput& other) {
    EXPECT_TRUE(one.o == other.o) << "O differs: " << one.kernel_spec;
    EXPECT_TRUE(bits_of(one.lse) == bits_of(other.lse)) << "LSE differs: " << one.kernel_spec;
  }

  Engine engine_{GetParam()};
};

TEST_P(Integers, ScalesOfTensorsHeadsAndTokensMatchFloat64) {
  for (const auto& [q, k] : {std::pair{Scales::tensor, Scales::tensor},
                             {Scales::heads, Scales::heads},
                             {Scales::tokens, Scales::heads},
                             {Scales::tokens, Scales::tokens},
                             {Scales::tensor, Scales::tokens}}) {
    SCOPED_TRACE(std::format("q {} k {}", static_cast<int>(q), static_cast<int>(k)));
    AttentionCase which = make_case(Storage::bf16, 2, 37, 131, 4, 2, 128, true, 1);
    check(stored_in_integers(which, integers_of(which, q, k)));
    which = make_case(Storage::fp16, 1, 3, 200, 8, 2, 64, false, 2);
    check(stored_in_integers(which, integers_of(which, q, k)));
  }
}

TEST_P(Integers, HeadDimsAndRowsOfEveryNumber) {
  for (const auto& [dim, dim_v] : {std::pair{64, 64}, {128, 128}, {192, 128}, {256, 256}}) {
    if (dim == 256 && GetParam() == "gfx942") continue;
    for (const int rows : {1, 40, 130}) {
      SCOPED_TRACE(std::format("d{} q{}", dim, rows));
      AttentionCase which = make_case(Storage::fp16, 1, rows, 150, 4, 2, dim, true, 11, 1.0, dim_v);
      which = stored_in_integers(which, integers_of(which, Scales::heads, Scales::tokens));
      const AttentionOutput output = run(which, schedules[1]);
      EXPECT_EQ(compare_rows(which, attention_reference(which.inputs), output).wrong(), "");
    }
  }
}

TEST_P(Integers, MasksModifiersAndO) {
  AttentionCase which = make_case(Storage::bf16, 2, 20, 150, 4, 2, 128, true, 21);
  add_bias(which, 1, 4, 1.0, 22);
  add_alibi(which, 1);
  add_sink(which, 0.5);
  check(stored_in_integers(which, integers_of(which, Scales::tokens, Scales::heads)));
  which = make_case(Storage::fp16, 2, 9, 300, 6, 2, 64, false, 23);
  which.inputs.window = true;
  which.inputs.window_left = 50;
  which.inputs.window_right = 3;
  which.inputs.softcap = 5;
  which.output_fp32 = true;
  check(stored_in_integers(which, integers_of(which, Scales::tensor, Scales::tokens)));
  // Either sign.
  which.inputs.scale = -0.2;
  StoredIntegers negative = integers_of(which, Scales::heads, Scales::tensor);
  for (std::size_t i = 0; i < negative.q.numbers.size(); i += 2) negative.q.numbers[i] *= -1;
  check(stored_in_integers(which, negative));
  which.inputs.softcap = 0;
  check(stored_in_integers(which, negative));
  which.inputs.scale = 0;
  check(stored_in_integers(which, negative));
}

// −128 · −128 · D: the largest sum there is.
TEST_P(Integers, TheLargestSums) {
  AttentionCase which = make_case(Storage::fp16, 1, 5, 70, 2, 1, 128, false, 31);
  which.inputs.scale = 0x1p-18;
  std::ranges::fill(which.inputs.q, -128.0F);
  for (std::size_t i = 0; i < which.inputs.k.size(); ++i) which.inputs.k[i] = i / 128 % 2 == 0 ? -128.0F : 127.0F;
  check(stored_in_integers(which, {}));
}

TEST_P(Integers, TurnedPackedPaddedAndSplit) {
  AttentionCase which = make_case(Storage::bf16, 2, 37, 131, 4, 2, 128, true, 41);
  which = stored_in_integers(which, integers_of(which, Scales::tokens, Scales::tokens));
  const AttentionOutput wanted = run(which, schedules.front());
  for (const ScatteredTensors& tensors : {ScatteredTensors{.q = turned, .k = turned, .v = turned, .o = turned},
                                          ScatteredTensors{.k = Scattered::odd_rows}, ScatteredTensors{.v = turned}}) {
    which.scattered = tensors;
    expect_equal(run(which, schedules[1]), wanted);
  }
  which = make_case(Storage::fp16, 1, 150, 300, 4, 2, 64, true, 42);
  AttentionInputs& in = which.inputs;
  in.batch = 3;
  in.query_starts = {0, 20, 21, 150};
  in.key_starts = {0, 130, 130, 300};
  in.query_length = 129;
  in.key_length = 170;
  check(stored_in_integers(which, integers_of(which, Scales::tokens, Scales::tokens)));
  which = make_case(Storage::bf16, 2, 2, 2200, 4, 2, 64, true, 43);
  which.inputs.key_lengths = {2200, 1500};
  which = stored_in_integers(which, integers_of(which, Scales::tokens, Scales::tokens));
  which.splits = 1;
  const AttentionOutput whole = check(which);
  for (const int splits : {2, 128}) {
    which.splits = splits;
    const AttentionOutput split = run(which, schedules[1]);
    EXPECT_TRUE(split.kernel_spec.contains(" split=")) << split.kernel_spec;
    expect_equal(split, whole);
  }
}

// Scores that are the same numbers in either way: 16 bits hold these integers, and scales are powers of two.
TEST_P(Integers, AsSixteenBitsWhereThoseAreExact) {
  AttentionCase which = make_case(Storage::fp16, 2, 37, 131, 4, 2, 128, true, 51);
  which = stored_in_integers(which, {.q = {.numbers = {0x1p-5F}}, .k = {.numbers = {0x1p-5F}}});
  add_bias(which, 1, 1, 0.0, 52);
  const AttentionOutput integers = run(which, schedules.front());
  which.integers.reset();
  expect_equal(integers, run(which, schedules.front()));
}

// rocMLIR: a score is rounded to fp16 once, behind the bias. Compared with the softmax of such scores.
TEST_P(Integers, ScoresRoundedToHalf) {
  for (const bool biased : {false, true}) {
    AttentionCase which = make_case(Storage::fp16, 1, 33, 70, 2, 1, 64, true, 61);
    if (biased) add_bias(which, 1, 2, 1.0, 62);
    which = stored_in_integers(which, {.q = {.numbers = {0x1p-5F}}, .k = {.numbers = {0x1p-5F}}, .half_scores = true});
    const AttentionOutput output = run(which, schedules[1]);
    EXPECT_TRUE(output.kernel_spec.contains(" scores=fp16")) << output.kernel_spec;
    // One dim of Q and K, of which the score is; V as it is.
    AttentionCase rounded = which;
    AttentionInputs& in = rounded.inputs;
    in.bias_batches = 1;
    in.bias_heads = 2;
    in.bias.assign(std::size_t{2} * in.query_length * in.key_length, 0);
    for (int h = 0; h < 2; ++h)
      for (int i = 0; i < in.query_length; ++i)
        for (int j = 0; j < in.key_length; ++j) {
          double dot = 0;
          for (int c = 0; c < 64; ++c)
            dot += static_cast<double>(in.q[(((std::size_t(i) * 2) + h) * 64) + c]) * in.k[(std::size_t(j) * 64) + c];
          const std::size_t at = (((std::size_t(h) * in.query_length) + i) * in.key_length) + j;
          const float bias = biased ? which.inputs.bias[at] : 0;
          const float score = (static_cast<float>(dot) * static_cast<float>(in.scale)) + bias;
          in.bias[at] = static_cast<float>(static_cast<_Float16>(score));
        }
    std::ranges::fill(in.q, 0.0F);
    EXPECT_EQ(compare_rows(rounded, attention_reference(in), output).wrong(), "");
  }
}

TEST_P(Integers, WhatCannotBeIsRefusedByName) {
  AttentionCase which = make_case(Storage::bf16, 1, 5, 70, 2, 1, 64, false, 71);
  which = stored_in_integers(which, integers_of(which, Scales::tokens, Scales::tokens));
  const auto refused = [&](const ChangeForwardCall& change) {
    const AttentionOutput output = run_attention(engine_.get(), which, change);
    EXPECT_NE(output.status, WAVEJIT_OK);
    return output.detail;
  };
  const auto has = [](const std::string& text) { return ::testing::HasSubstr(text); };
  EXPECT_THAT(refused([](auto& call) { call.v.dtype = WAVEJIT_INT8; }), has("v.dtype = 8 (int8); accepted: 1 (fp16)"));
  EXPECT_THAT(refused([](auto& call) { call.k.dtype = WAVEJIT_BF16; }), has("k.dtype = 2 (bf16); accepted: 8 (int8)"));
  EXPECT_THAT(refused([](auto& call) { call.q_scale.sizes[1] = 4; }), has("q_scale.sizes[1] = 4; accepted: 1 or 5"));
  EXPECT_THAT(refused([](auto& call) { call.k_scale.strides[1] = -1; }), has("k_scale.strides[1]"));
  EXPECT_THAT(refused([](auto& call) { call.token_scales = 2; }), has("token_scales = 2; accepted: 0, 1"));
  EXPECT_THAT(refused([](auto& call) { call.token_scales = 0; }),
              has("k_scale.sizes[1] (length) = 70; accepted: 1, or k.sizes[1] beside token_scales = 1"));
  EXPECT_THAT(refused([](auto& call) { call.k_scale.sizes[1] = 1; }),
              has("k_scale.sizes[1] (length) = 1; accepted: k.sizes[1] = 70 (token_scales = 1)"));
  EXPECT_THAT(refused([](auto& call) { call.k_scale = {}; }), has("k_scale.data = null"));
  EXPECT_THAT(refused([](auto& call) { call.v_scale = call.k_scale; }), has("v_scale.data"));
  EXPECT_THAT(refused([](auto& call) { call.score_rounding = 2; }), has("score_rounding = 2"));
  EXPECT_THAT(
      refused([](auto& call) {
        call.score_rounding = 1;
        call.softcap = 3;
      }),
      has("score_rounding = 1: qk=i8 with scores=fp16 and softcap has no kernel on " + std::string(GetParam())));
  which.integers.reset();
  EXPECT_THAT(refused([](auto& call) { call.score_rounding = 1; }), has("score_rounding = 1; accepted: 0 beside q"));
}

INSTANTIATE_TEST_SUITE_P(All, Integers, ::testing::Values("gfx942", "gfx950"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace wavejit::tests
