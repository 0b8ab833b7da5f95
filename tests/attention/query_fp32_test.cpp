// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Q in f32: rounded once, where it is loaded. So every result has the bits of the call whose caller has rounded Q, and
// is held against float64 of the rounded numbers: on every pipeline, whole and split, packed heads, pages, lists.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "attention/modified.h"

namespace wavejit::tests {
namespace {

// Numbers of f32 on both sides of what they are rounded to, ties among them.
std::vector<float> unrounded(Storage storage, const std::vector<float>& rounded) {
  const int kept_bits = storage == Storage::bf16 ? 8 : 11;
  std::vector<float> wide(rounded.size());
  for (std::size_t i = 0; i < rounded.size(); ++i) {
    const float value = rounded[i];
    const float step = value == 0 ? 0 : std::ldexp(1.0F, std::ilogb(value) + 1 - kept_bits);
    const float moved = value + (step * std::vector<float>{0.49F, -0.24F, 0.5F, 0.001F, -0.2F}[i % 5]);
    wide[i] = to_storage(storage, moved) == to_storage(storage, value) ? moved : value;
  }
  return wide;
}

AttentionCase in_fp32(AttentionCase which) {
  which.wide_q = unrounded(which.storage, which.inputs.q);
  return which;
}

class QueryFp32 : public ::testing::TestWithParam<std::string> {
 protected:
  // Float64 under all schedules on all pipelines, and the bits of Q rounded by the caller.
  AttentionOutput check(const AttentionCase& which) {
    const AttentionCase wide = in_fp32(which);
    EXPECT_NE(wide.wide_q, which.inputs.q);
    const AttentionOutput output = pipelines_.check(wide);
    EXPECT_TRUE(output.kernel_spec.contains(" q=fp32 ")) << output.kernel_spec;
    const AttentionOutput narrow = run_attention(pipelines_.engines().back()->get(), which);
    EXPECT_EQ(narrow.status, WAVEJIT_OK) << narrow.detail;
    EXPECT_FALSE(narrow.kernel_spec.contains(" q=fp32 "));
    EXPECT_TRUE(output.o == narrow.o) << output.kernel_spec << " beside " << narrow.kernel_spec;
    EXPECT_TRUE(bits_of(output.lse) == bits_of(narrow.lse)) << output.kernel_spec;
    return output;
  }

  Pipelines pipelines_{GetParam()};
};

TEST_P(QueryFp32, IsRoundedOnceOnEveryPipeline) {
  check(make_case(Storage::bf16, 1, 300, 170, 2, 1, 128, true, 11));
  AttentionCase padded = make_case(Storage::fp16, 2, 65, 130, 2, 2, 64, false, 12);
  padded.layout = Layout::padded;
  padded.inputs.scale = -0.3;
  check(padded);
  check(make_case(Storage::bf16, 1, 270, 100, 2, 2, 80, false, 13));
  check(make_case(Storage::fp16, 1, 40, 90, 2, 1, 40, true, 14));
}

TEST_P(QueryFp32, OfModifiedScoresAndWideOutputs) {
  AttentionCase which = make_case(Storage::bf16, 1, 280, 150, 2, 1, 64, true, 15);
  add_bias(which, 1, 1, 1.0, 16);
  add_alibi(which, 1);
  which.inputs.softcap = 12;
  check(which);
  which = make_case(Storage::fp16, 1, 260, 130, 2, 1, 128, true, 17);
  which.output_fp32 = true;
  check(which);
}

// Heads packed, waves that share a chunk, parts merged in one launch and in two.
TEST_P(QueryFp32, OfFewRowsAndSplitKeys) {
  for (const int dim : {64, 128}) {
    AttentionCase which = make_case(Storage::bf16, 1, dim == 64 ? 1 : 3, 1100, 4, 2, dim, true, 20);
    const AttentionOutput whole = check(which);
    which.splits = 2;
    for (const std::uint32_t flags : {WAVEJIT_ONE_LAUNCH, WAVEJIT_TWO_LAUNCHES}) {
      which.flags = flags;
      const AttentionOutput split = pipelines_.run(in_fp32(which));
      EXPECT_TRUE(split.kernel_spec.contains(" split=")) << split.kernel_spec;
      EXPECT_TRUE(split.o == whole.o) << split.kernel_spec;
    }
  }
}

TEST_P(QueryFp32, OfPagesAndMixes) {
  AttentionCase which = make_case(Storage::bf16, 3, 1, 1100, 2, 1, 128, true, 30);
  AttentionInputs& in = which.inputs;
  in.key_lengths = {300, 1100, 70};
  in.query_starts = {0, 260, 261, 263};
  in.query_length = 260;
  in.q = make_case(Storage::bf16, 1, 263, 1, 2, 1, 128, false, 31).inputs.q;
  const AttentionOutput dense = check(which);
  for (const int size : {16, 64}) {
    which.pages = Pages{.size = size};
    EXPECT_TRUE(pipelines_.run(in_fp32(which)).o == dense.o) << size;
  }
}

TEST_P(QueryFp32, BesideKeysOfEightBits) {
  const wavejit_dtype type = GetParam() == "gfx950" ? WAVEJIT_E4M3 : WAVEJIT_E4M3_FNUZ;
  AttentionCase which = make_case(Storage::bf16, 1, 260, 150, 2, 1, 128, true, 32);
  check(stored_in_bytes(which, {.type = type, .k_scale = {0.5F}, .v_scale = {2.0F}}));
}

// What 16 bits do not hold becomes what rounding makes of it; NaN stays NaN, wherever its bits are.
TEST_P(QueryFp32, OfNumbersThatSixteenBitsDoNotHold) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> odd = {1e30F,
                                  -7e4F,
                                  65519.99F,
                                  65520.0F,
                                  0x1p-140F,
                                  0x1.8p-26F,
                                  0x1p-25F,
                                  infinity,
                                  -0.0F,
                                  3.4e38F,
                                  std::bit_cast<float>(0x7F800001U),
                                  std::bit_cast<float>(0xFFFFFFFFU)};
  for (const Storage storage : {Storage::bf16, Storage::fp16}) {
    AttentionCase which = make_case(storage, 1, 70, 70, 1, 1, 64, false, 33);
    AttentionCase wide = which;
    wide.wide_q = which.inputs.q;
    for (std::size_t row = 0; row < odd.size(); ++row) {
      wide.wide_q[(row * 64) + (row * 5)] = odd[row];
      which.inputs.q[(row * 64) + (row * 5)] = from_storage(storage, to_storage(storage, odd[row]));
    }
    const AttentionOutput output = run_attention(pipelines_.generic().get(), wide);
    const AttentionOutput narrow = run_attention(pipelines_.generic().get(), which);
    ASSERT_EQ(output.status, WAVEJIT_OK) << output.detail;
    ASSERT_EQ(narrow.status, WAVEJIT_OK) << narrow.detail;
    for (std::size_t i = 0; i < output.o.size(); ++i) {
      const float given = from_storage(storage, output.o[i]);
      const float wanted = from_storage(storage, narrow.o[i]);
      EXPECT_TRUE(output.o[i] == narrow.o[i] || (std::isnan(given) && std::isnan(wanted))) << "row " << i / 64;
    }
    for (const std::size_t row : {10, 11}) EXPECT_TRUE(std::isnan(from_storage(storage, output.o[row * 64]))) << row;
  }
}

TEST_P(QueryFp32, WhoseDimsStandApartIsRefusedByName) {
  AttentionCase which = in_fp32(make_case(Storage::bf16, 1, 30, 30, 1, 1, 64, false, 34));
  which.scattered.q = Scattered::rows_inside;
  const AttentionOutput output = run_attention(pipelines_.engines().back()->get(), which);
  EXPECT_EQ(output.status, WAVEJIT_UNSUPPORTED);
  EXPECT_TRUE(output.detail.contains("q=fp32 is loaded 32 bytes of a row at a time")) << output.detail;
}

INSTANTIATE_TEST_SUITE_P(All, QueryFp32, ::testing::Values("gfx942", "gfx950"),
                         [](const ::testing::TestParamInfo<std::string>& info) { return info.param; });

// The generic pipeline of waves of 32 lanes takes it likewise.
TEST(QueryFp32Targets, OfWavesOf32Lanes) {
  Engine engine("gfx1201");
  const AttentionCase which = make_case(Storage::bf16, 1, 70, 90, 2, 1, 128, true, 35);
  check_under_all_schedules(engine, in_fp32(which));
  const AttentionOutput wide = run_attention(engine.get(), in_fp32(which));
  EXPECT_TRUE(wide.o == run_attention(engine.get(), which).o);
}

}  // namespace
}  // namespace wavejit::tests
