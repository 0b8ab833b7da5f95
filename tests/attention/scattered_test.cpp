// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tensors whose dims do not stand side by side, or whose rows begin anywhere: bit by bit as dense ones, and within the
// bounds of float64. Between rows, dims and heads, and all around, is NaN.
#include <gtest/gtest.h>

#include <format>
#include <string>
#include <utility>

#include "attention/modified.h"

namespace wavejit::tests {
namespace {

constexpr auto turned = Scattered::rows_inside;
constexpr auto odd = Scattered::odd_rows;

class ScatteredElements : public ::testing::TestWithParam<std::string> {
 protected:
  AttentionOutput run(const AttentionCase& which, const Schedule& schedule) {
    set_schedule(schedule.order, schedule.seed);
    AttentionOutput output = run_attention(engine_.get(), which);
    EXPECT_EQ(output.status, WAVEJIT_OK) << output.detail << output.reports;
    EXPECT_EQ(output.reports, "");
    EXPECT_TRUE(output.fence_intact) << "something outside O or LSE was written";
    return output;
  }
  AttentionOutput dense(AttentionCase which) {
    which.scattered = {};
    return run(which, schedules.front());
  }
  static void expect_equal(const AttentionOutput& one, const AttentionOutput& other) {
    EXPECT_TRUE(one.o == other.o) << "O differs: " << one.kernel_spec;
    EXPECT_TRUE(bits_of(one.lse) == bits_of(other.lse)) << "LSE differs: " << one.kernel_spec;
  }
  // Once, under every check.
  AttentionOutput expect_same(const AttentionCase& which) {
    AttentionOutput output = run(which, schedules[1]);
    EXPECT_TRUE(output.kernel_spec.contains(" trans_")) << output.kernel_spec;
    expect_equal(output, dense(which));
    return output;
  }
  // Under every schedule, and against float64.
  void check(const AttentionCase& which) {
    const AttentionOutput wanted = dense(which);
    EXPECT_EQ(compare_rows(which, attention_reference(which.inputs), wanted).wrong(), "");
    for (const Schedule& schedule : schedules) expect_equal(run(which, schedule), wanted);
  }

  Engine engine_{GetParam()};
};

TEST_P(ScatteredElements, EveryTensorByItselfAndAllTogether) {
  AttentionCase which = make_case(Storage::bf16, 2, 37, 131, 4, 2, 128, true, 1);
  for (const ScatteredTensors& tensors :
       {ScatteredTensors{.q = turned}, ScatteredTensors{.k = turned}, ScatteredTensors{.v = turned},
        ScatteredTensors{.o = turned}, ScatteredTensors{.q = odd, .o = odd}, ScatteredTensors{.k = odd, .v = odd},
        ScatteredTensors{.q = turned, .k = turned, .o = odd}}) {
    which.scattered = tensors;
    expect_same(which);
  }
  which.scattered = {.q = turned, .k = turned, .v = turned, .o = turned};
  check(which);
  which = make_case(Storage::fp16, 1, 140, 70, 2, 1, 64, false, 2);
  which.scattered = {.q = turned, .k = odd, .v = turned, .o = turned};
  check(which);
}

TEST_P(ScatteredElements, LengthsOfEveryKind) {
  for (const auto& [rows, keys] : {std::pair{1, 1}, {3, 64}, {64, 63}, {129, 65}, {5, 0}, {130, 200}}) {
    SCOPED_TRACE(std::format("q{} k{}", rows, keys));
    AttentionCase which = make_case(Storage::fp16, 2, rows, keys, 2, 1, 64, rows % 2 == 0, 11);
    which.scattered = {.q = turned, .k = turned, .v = turned, .o = turned};
    expect_same(which);
  }
}

TEST_P(ScatteredElements, HeadDims) {
  for (const auto& [dim, dim_v] : {std::pair{192, 128}, {256, 256}}) {
    if (dim == 256 && GetParam() == "gfx942") continue;
    SCOPED_TRACE(dim);
    AttentionCase which = make_case(Storage::bf16, 1, 33, 100, 2, 2, dim, true, 21, 1.0, dim_v);
    which.scattered = {.q = turned, .k = turned, .v = turned, .o = turned};
    expect_same(which);
  }
}

TEST_P(ScatteredElements, MasksModifiersAndO) {
  AttentionCase which = make_case(Storage::bf16, 2, 70, 150, 4, 2, 128, false, 31);
  which.inputs.window = true;
  which.inputs.window_left = 40;
  which.inputs.window_right = 7;
  which.inputs.softcap = 6;
  add_bias(which, 1, 4, 1.0, 32);
  add_sink(which, 0.5);
  which.output_fp32 = true;
  which.scattered = {.q = odd, .k = turned, .v = odd, .o = turned};
  check(which);
  which.inputs.bias.clear();
  which.output_fp32 = false;
  add_alibi(which, 2);
  which.inputs.scale = -0.1;
  which.inputs.key_lengths = {77, 150};
  expect_same(which);
}

TEST_P(ScatteredElements, PackedSequences) {
  AttentionCase which = make_case(Storage::fp16, 1, 150, 300, 4, 2, 128, true, 41);
  AttentionInputs& in = which.inputs;
  in.batch = 3;
  in.query_starts = {0, 20, 21, 150};
  in.key_starts = {0, 130, 130, 300};
  in.query_length = 129;
  in.key_length = 170;
  which.scattered = {.q = turned, .k = turned, .v = turned, .o = turned};
  check(which);
}

TEST_P(ScatteredElements, LeftPadding) {
  AttentionCase which = make_case(Storage::bf16, 2, 9, 140, 4, 2, 64, true, 51);
  which.inputs.key_lengths = {140, 70};
  which.first_keys = {0, 67};
  which.scattered = {.k = turned, .v = turned};
  expect_same(which);
}

TEST_P(ScatteredElements, SplitKeys) {
  AttentionCase which = make_case(Storage::bf16, 1, 2, 2200, 4, 2, 64, true, 61);
  which.splits = 3;
  for (const bool wide : {false, true}) {
    which.output_fp32 = wide;
    which.scattered = {.q = turned, .k = turned, .v = odd, .o = turned};
    expect_same(which);
  }
  AttentionCase of_o = make_case(Storage::fp16, 1, 3, 2100, 4, 1, 256, false, 62);
  if (GetParam() == "gfx942") of_o = make_case(Storage::fp16, 1, 3, 2100, 4, 1, 192, false, 62, 1.0, 128);
  of_o.splits = 2;
  of_o.scattered = {.o = turned};
  AttentionOutput output = run(of_o, schedules[1]);
  expect_equal(output, dense(of_o));
}

TEST_P(ScatteredElements, WhatCannotBeIsRefusedByName) {
  AttentionCase which = make_case(Storage::bf16, 2, 5, 70, 2, 1, 64, false, 71);
  const auto refused = [&](const ChangeForwardCall& change) {
    const AttentionOutput output = run_attention(engine_.get(), which, change);
    EXPECT_NE(output.status, WAVEJIT_OK);
    return output.detail;
  };
  EXPECT_THAT(refused([](auto& call) { call.k.strides[3] = 2; }),
              ::testing::HasSubstr("k.strides[3] (head dim) = 2; accepted: 1, or 1 for strides[1]"));
  EXPECT_THAT(refused([](auto& call) {
                call.v.strides[1] = 0;
                call.v.strides[0] += 1;
              }),
              ::testing::HasSubstr("v.strides[1]"));
  EXPECT_THAT(refused([](auto& call) {
                call.o.strides[1] = 1;
                call.o.strides[3] = 4;
              }),
              ::testing::HasSubstr("with which elements overlap"));
  EXPECT_THAT(refused([](auto& call) {
                call.q.strides[1] = 1;
                call.q.strides[3] = std::int64_t{1} << 25;
              }),
              ::testing::HasSubstr("less than 2147483648 (2 GiB)"));
  wavejit_engine_options options{};
  options.size = sizeof options;
  options.pipeline = GetParam() == "gfx942" ? "interleaved" : "dualwave";
  const Engine pinned(GetParam(), options);
  which.scattered = {.k = turned};
  const AttentionOutput output = run_attention(pinned.get(), which);
  EXPECT_EQ(output.status, WAVEJIT_UNSUPPORTED);
  EXPECT_THAT(output.detail, ::testing::HasSubstr("moves rows whose dims are contiguous"));
}

INSTANTIATE_TEST_SUITE_P(All, ScatteredElements, ::testing::Values("gfx942", "gfx950"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace wavejit::tests
