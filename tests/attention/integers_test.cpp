// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Q and K in int8: what no row says (value_rows.txt). Where scores are exact in either way, bit by bit against the same
// numbers in 16 bits. All around the tensors is garbage.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "attention/modified.h"
#include "attention/value_scales.h"

namespace wavejit::tests {
namespace {

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

// −128 · −128 · D: the largest sum there is.
TEST_P(Integers, TheLargestSums) {
  AttentionCase which = make_case(Storage::fp16, 1, 5, 70, 2, 1, 128, false, 31);
  which.inputs.scale = 0x1p-18;
  std::ranges::fill(which.inputs.q, -128.0F);
  for (std::size_t i = 0; i < which.inputs.k.size(); ++i) which.inputs.k[i] = i / 128 % 2 == 0 ? -128.0F : 127.0F;
  check(stored_in_integers(which, {}));
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
  const AttentionInputs& in = which.inputs;
  which = stored_in_integers(which, {.q = row_scales("tokens", 1, in.query_rows(), in.query_heads),
                                     .k = row_scales("tokens", 1, in.key_rows(), in.kv_heads)});
  const auto refused = [&](const ChangeForwardCall& change) {
    const AttentionOutput output = run_attention(engine_.get(), which, change);
    EXPECT_NE(output.status, WAVEJIT_OK);
    return output.detail;
  };
  const auto has = [](const std::string& text) { return ::testing::HasSubstr(text); };
  EXPECT_THAT(refused([](auto& call) { call.v.dtype = WAVEJIT_INT8; }), has("v.dtype = 8 (int8); accepted: 1 (fp16)"));
  EXPECT_THAT(refused([](auto& call) { call.k.dtype = WAVEJIT_BF16; }), has("k.dtype = 2 (bf16); accepted: 8 (int8)"));
  EXPECT_THAT(refused([](auto& call) { call.scales.q_scale.sizes[1] = 4; }),
              has("q_scale.sizes[1] = 4; accepted: 1 or 5"));
  EXPECT_THAT(refused([](auto& call) { call.scales.k_scale.strides[1] = -1; }), has("k_scale.strides[1]"));
  EXPECT_THAT(refused([](auto& call) { call.scales.token_scales = 2; }), has("token_scales = 2; accepted: 0, 1"));
  EXPECT_THAT(refused([](auto& call) { call.scales.token_scales = 0; }),
              has("k_scale.sizes[1] (length) = 70; accepted: 1, or k.sizes[1] beside token_scales = 1"));
  EXPECT_THAT(refused([](auto& call) { call.scales.k_scale.sizes[1] = 1; }),
              has("k_scale.sizes[1] (length) = 1; accepted: k.sizes[1] = 70 (token_scales = 1)"));
  EXPECT_THAT(refused([](auto& call) { call.scales.k_scale = {}; }), has("k_scale.data = null"));
  EXPECT_THAT(refused([](auto& call) { call.scales.v_scale = call.scales.k_scale; }), has("v_scale.data"));
  EXPECT_THAT(refused([](auto& call) { call.modifiers.score_rounding = 2; }), has("score_rounding = 2"));
  EXPECT_THAT(
      refused([](auto& call) {
        call.modifiers.score_rounding = 1;
        call.modifiers.softcap = 3;
      }),
      has("score_rounding = 1: qk=i8 with scores=fp16 and softcap has no kernel on " + std::string(GetParam())));
  which.integers.reset();
  EXPECT_THAT(refused([](auto& call) { call.modifiers.score_rounding = 1; }),
              has("score_rounding = 1; accepted: 0 beside q"));
}

INSTANTIATE_TEST_SUITE_P(All, Integers, ::testing::Values("gfx942", "gfx950"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace wavejit::tests
