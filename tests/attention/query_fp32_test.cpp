// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Q in f32 is rounded once, where it is loaded: numbers that 16 bits do not hold, keys of 8 bits, and what is refused of
// it and of O in f32. Other cases are rows of value_rows.txt.
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
  EXPECT_TRUE(output.detail.contains("trans_q has no kernel beside q=fp32")) << output.detail;
}

TEST(OutputFp32, OfAStoreThatSwapsHalvesIsRefusedByName) {
  const Engine engine("gfx950", nullptr, "auto o_store=permlane");
  AttentionCase which = make_case(Storage::bf16, 1, 4, 64, 1, 1, 64, false, 15);
  which.output_fp32 = true;
  const AttentionOutput refused = run_attention(engine.get(), which);
  EXPECT_EQ(refused.status, WAVEJIT_UNSUPPORTED);
  EXPECT_TRUE(refused.detail.contains("o=fp32 has no kernel beside o_store=permlane")) << refused.detail;
}

INSTANTIATE_TEST_SUITE_P(All, QueryFp32, ::testing::Values("gfx942", "gfx950"),
                         [](const ::testing::TestParamInfo<std::string>& info) { return info.param; });

}  // namespace
}  // namespace wavejit::tests
