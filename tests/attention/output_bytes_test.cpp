// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// O in 8 bits: numbers beyond what a type holds, NaN, rows without keys, scales of every kind, merged parts, and what is
// refused of it. Other cases are rows of value_rows.txt.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <format>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "attention/modified.h"
#include "support/byte_floats.h"
#include "support/fenced_tensor.h"

namespace wavejit::tests {
namespace {

using fenced::DeviceArray;
using fenced::require;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();

class OutputBytes : public ::testing::TestWithParam<std::string> {
 protected:
  std::vector<wavejit_dtype> types() const {
    if (GetParam() == "gfx942") return {WAVEJIT_E4M3, WAVEJIT_E4M3_FNUZ, WAVEJIT_INT8};
    return {WAVEJIT_E4M3, WAVEJIT_INT8};
  }

  AttentionOutput run(const AttentionCase& which, const ChangeForwardCall& change = {}) const {
    AttentionOutput output = run_attention(engine_.get(), which, change);
    EXPECT_EQ(output.status, WAVEJIT_OK) << output.detail << output.reports;
    EXPECT_TRUE(output.fence_intact);
    return output;
  }

  // O of the same call in f32, scaled and rounded here.
  std::vector<std::uint16_t> expected(AttentionCase which) const {
    const AttentionCase narrow = which;
    which.output_bytes.reset();
    which.output_fp32 = true;
    std::vector<std::uint16_t> bytes;
    for (const float number : output_in_fp32(run(which))) bytes.push_back(output_byte(narrow, number));
    return bytes;
  }

  std::string refusal(const AttentionCase& which, const ChangeForwardCall& change = {}) const {
    const AttentionOutput output = run_attention(engine_.get(), which, change);
    EXPECT_NE(output.status, WAVEJIT_OK);
    return output.detail;
  }

  Engine engine_{GetParam()};
};

// One key: O is its value, in every row. Ties, numbers next to the largest and beyond it, below the least, and NaN.
AttentionCase of_values(const std::vector<float>& values) {
  AttentionCase which = make_case(Storage::bf16, 1, 3, 1, 1, 1, 64, false, 11);
  for (std::size_t i = 0; i < which.inputs.v.size(); ++i) which.inputs.v[i] = values[i % values.size()];
  return which;
}

TEST_P(OutputBytes, OfNumbersThatATypeDoesNotHold) {
  const std::vector<float> values = {448,    -448,     456,       464,      -464,      472,        480,      1e30F,
                                     -1e30F, infinity, -infinity, 240,      -240,      244,        248,      -248,
                                     256,    127,      127.5F,    -128,     -128.5F,   -129,       0.5F,     1.5F,
                                     -2.5F,  0x1p-9F,  0x1p-10F,  0x1p-11F, -0x1p-11F, 0x1.8p-10F, 0,        -0.0F,
                                     nan,    17,       19,        18.5F,    0x1.1p-7F, -0.5F,      -0x1p-20F};
  for (const wavejit_dtype type : types()) {
    SCOPED_TRACE(byte_format(type).name);
    AttentionCase which = of_values(values);
    which.output_bytes = type;
    for (const float scale : {1.0F, 0.25F, 3.0F, 0x1.fffffep-3F, 1e-30F, 0x1p126F}) {
      SCOPED_TRACE(scale);
      which.output_scale = scale;
      const std::vector<std::uint16_t> bytes = expected(which);
      EXPECT_EQ(run(which).o, bytes);
      which.output_scale_in_memory = !which.output_scale_in_memory;
      EXPECT_EQ(run(which).o, bytes);
    }
  }
}

// Many numbers between those of the types, of scales that are no powers of two.
TEST_P(OutputBytes, OfAnyNumbers) {
  for (const wavejit_dtype type : types()) {
    SCOPED_TRACE(byte_format(type).name);
    AttentionCase which = make_case(Storage::fp16, 1, 130, 40, 2, 1, 128, false, 12, 2.0);
    which.output_bytes = type;
    for (const float scale : {0.0317F, 0.7F, 0x1.123456p-7F}) {
      which.output_scale = scale;
      EXPECT_EQ(run(which).o, expected(which)) << scale;
    }
  }
}

// The host does not see what stands in device memory. What the header says of it.
TEST_P(OutputBytes, OfScalesThatOnlyTheDeviceSees) {
  for (const wavejit_dtype type : types()) {
    SCOPED_TRACE(byte_format(type).name);
    const ByteFormat& format = byte_format(type);
    AttentionCase which = of_values({2, -2, 0});
    which.output_bytes = type;
    which.output_scale_in_memory = true;
    const auto bytes_with = [&](float scale) {
      which.output_scale = scale;
      return run(which).o;
    };
    const std::uint16_t of_nan = type == WAVEJIT_INT8 ? 0 : format.nan;
    for (const std::uint16_t byte : bytes_with(nan)) ASSERT_EQ(byte, of_nan);
    const std::vector<std::uint16_t> by_zero = bytes_with(0);
    EXPECT_EQ(by_zero[0], nearest_byte(format, 1e30F));
    EXPECT_EQ(by_zero[1], nearest_byte(format, -1e30F));
    EXPECT_EQ(by_zero[2], of_nan);
    EXPECT_EQ(bytes_with(-1)[0], nearest_byte(format, -2));
    EXPECT_EQ(bytes_with(infinity)[0], 0);
  }
}

TEST_P(OutputBytes, RowsWithoutKeysAreZero) {
  for (const wavejit_dtype type : types()) {
    AttentionCase which = make_case(Storage::bf16, 2, 5, 3, 2, 1, 64, true, 13);
    which.inputs.key_lengths = {3, 0};
    which.output_bytes = type;
    const AttentionOutput output = run(which);
    EXPECT_EQ(output.o, expected(which));
    constexpr std::size_t rows_before_keys = 2 * 2 * 64;
    for (std::size_t i = 0; i < rows_before_keys; ++i) ASSERT_EQ(output.o[i], 0) << i;
  }
}

// Q, K and V in 8 bits, too: nothing of the call is wider in memory.
TEST_P(OutputBytes, BesideQueriesOfEightBits) {
  if (GetParam() != "gfx950") return;
  AttentionCase which = make_case(Storage::bf16, 1, 300, 150, 2, 1, 128, true, 16);
  which = stored_in_bytes(which, {.type = WAVEJIT_E4M3, .queries = true});
  which.output_bytes = WAVEJIT_E4M3;
  const AttentionOutput output = run(which);
  EXPECT_THAT(output.kernel_spec, AllOf(HasSubstr(" queries=e4m3 "), HasSubstr(" o=e4m3 ")));
  EXPECT_EQ(output.o, expected(which));
}

// Parts are merged in f32 and rounded once.
TEST_P(OutputBytes, OfMergedParts) {
  constexpr int heads = 3;
  constexpr int tokens = 5;
  constexpr int dims = 72;
  constexpr std::size_t count = std::size_t{tokens} * heads * dims;
  wavejit_engine* engine = engine_.get();
  const DeviceArray<float> one(engine, normal_values(Storage::fp16, count, 2, 21));
  const DeviceArray<float> two(engine, normal_values(Storage::fp16, count, 2, 22));
  std::vector<float> sums = normal_values(Storage::fp16, std::size_t{heads} * tokens, 1, 23);
  const DeviceArray<float> lse(engine, sums);
  const DeviceArray<float> wide(engine, std::vector<float>(count));
  const DeviceArray<std::uint8_t> bytes(engine, std::vector<std::uint8_t>(count));
  const DeviceArray<float> scale(engine, {0.037F});
  wavejit_attention_merge_arguments call{};
  call.head.size = sizeof call;
  call.head.family = WAVEJIT_ATTENTION_MERGE;
  call.part_count = 2;
  for (const int part : {0, 1}) {
    call.parts[part].o = wavejit_dense_tensor(part == 0 ? one.get() : two.get(), WAVEJIT_FP32, 1, tokens, heads, dims);
    call.parts[part].lse = wavejit_dense_tensor(lse.get(), WAVEJIT_FP32, 1, heads, tokens, 1);
  }
  call.o = wavejit_dense_tensor(wide.get(), WAVEJIT_FP32, 1, tokens, heads, dims);
  require(wavejit_attention_merge(engine, &call, nullptr), "merge");
  require(wavejit_device_synchronize(engine), "synchronize");
  std::vector<float> numbers(count);
  require(wavejit_device_copy_out(engine, numbers.data(), wide.get(), count * sizeof(float)), "copy out");
  for (const wavejit_dtype type : types()) {
    SCOPED_TRACE(byte_format(type).name);
    AttentionCase as;
    as.output_bytes = type;
    as.output_scale = 0.037F;
    call.o = wavejit_dense_tensor(bytes.get(), type, 1, tokens, heads, dims);
    for (const bool in_memory : {false, true}) {
      call.output_scale.o_scale = in_memory ? scale.get() : nullptr;
      call.output_scale.o_scale_value = in_memory ? 0 : 0.037F;
      require(wavejit_attention_merge(engine, &call, nullptr), "merge");
      require(wavejit_device_synchronize(engine), "synchronize");
      std::vector<std::uint8_t> written(count);
      require(wavejit_device_copy_out(engine, written.data(), bytes.get(), count), "copy out");
      for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(written[i], output_byte(as, numbers[i])) << i;
    }
    call.output_scale.o_scale = nullptr;
    call.output_scale.o_scale_value = 0;
    EXPECT_EQ(wavejit_attention_merge(engine, &call, nullptr), WAVEJIT_INVALID_ARGUMENT);
    EXPECT_THAT(wavejit_last_detail(), HasSubstr("o_scale_value = 0"));
  }
}

TEST_P(OutputBytes, WhatIsRefusedByName) {
  AttentionCase which = make_case(Storage::bf16, 1, 4, 64, 1, 1, 64, false, 14);
  which.output_bytes = WAVEJIT_E4M3;
  for (const float scale : {0.0F, -1.0F, nan, infinity, 1e-39F, 0x1p127F}) {
    which.output_scale = scale;
    EXPECT_THAT(refusal(which), HasSubstr("o_scale_value = ")) << scale;
  }
  which.output_scale = 1;
  EXPECT_THAT(refusal(which, [](auto& call) { call.output_scale.o_scale = static_cast<float*>(call.o.data) + 1; }),
              HasSubstr("o_scale_value = 1; accepted: 0 beside o_scale"));
  which.output_scale_in_memory = true;
  EXPECT_THAT(refusal(which, [](auto& call) { call.output_scale.o_scale = static_cast<float*>(call.o.data) + 1; }),
              HasSubstr("o.data"));
  EXPECT_THAT(refusal(which,
                      [](auto& call) {
                        call.output_scale.o_scale =
                            reinterpret_cast<float*>(reinterpret_cast<std::uintptr_t>(call.output_scale.o_scale) + 1);
                      }),
              HasSubstr("o_scale = "));
  EXPECT_THAT(refusal(which, [](auto& call) { call.output_scale.unused = 7; }), HasSubstr("unused = 7; accepted: 0"));
  EXPECT_THAT(refusal(which, [](auto& call) { call.o.dtype = WAVEJIT_E5M2; }), HasSubstr("o.dtype = 5 (e5m2)"));
  which.scattered.o = Scattered::rows_inside;
  EXPECT_THAT(refusal(which), HasSubstr("o.strides[3] = 7; accepted: 1 beside o in 8 bits"));
  which = make_case(Storage::bf16, 1, 4, 64, 1, 1, 64, false, 15);
  EXPECT_THAT(refusal(which, [](auto& call) { call.output_scale.o_scale_value = 1; }),
              HasSubstr("only o of 8 bits has a scale"));
  EXPECT_THAT(refusal(which, [](auto& call) { call.output_scale.o_scale = static_cast<float*>(call.q.data); }),
              HasSubstr("only o of 8 bits has a scale"));
  if (GetParam() == "gfx942") return;
  which.output_bytes = WAVEJIT_E4M3_FNUZ;
  EXPECT_THAT(refusal(which),
              HasSubstr("o=e4m3_fnuz: " + GetParam() + " reads the encoding of the Open Compute Project"));
}

INSTANTIATE_TEST_SUITE_P(All, OutputBytes, ::testing::Values("gfx942", "gfx950", "gfx1201"),
                         [](const ::testing::TestParamInfo<std::string>& info) { return info.param; });

}  // namespace
}  // namespace wavejit::tests
