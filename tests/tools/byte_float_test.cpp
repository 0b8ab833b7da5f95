// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/byte_float.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace wavejit::tools {
namespace {

constexpr std::array types = {ByteType::e4m3, ByteType::e5m2, ByteType::e4m3_fnuz, ByteType::e5m2_fnuz, ByteType::i8};

// The codes of finite numbers that are not below 0, ascending.
std::vector<std::pair<double, std::uint8_t>> magnitudes_of(ByteType type) {
  std::vector<std::pair<double, std::uint8_t>> magnitudes;
  for (int code = 0; code < 0x80; ++code) {
    const float value = decode(type, static_cast<std::uint8_t>(code));
    if (std::isfinite(value)) magnitudes.emplace_back(static_cast<double>(value), static_cast<std::uint8_t>(code));
  }
  return magnitudes;
}

TEST(ByteFloatTest, EveryCodeRoundTrips) {
  for (const ByteType type : types)
    for (int code = 0; code < 256; ++code) {
      const auto byte = static_cast<std::uint8_t>(code);
      const float value = decode(type, byte);
      if (std::isnan(value)) {
        EXPECT_EQ(encode(type, value), nan_of(type));
      } else {
        EXPECT_EQ(encode(type, value), byte) << static_cast<int>(type) << " " << code;
      }
    }
}

// The nearest code, of two as near the even one, beyond the last one the last one.
TEST(ByteFloatTest, NumbersOfEverySizeBecomeTheNearest) {
  for (const ByteType type : types) {
    if (type == ByteType::i8) continue;
    const auto magnitudes = magnitudes_of(type);
    const auto nearest = [&](double of) {
      const double magnitude = std::min(of, magnitudes.back().first);
      std::pair<double, std::uint8_t> best = magnitudes.front();
      for (const auto& one : magnitudes) {
        const double off = std::fabs(one.first - magnitude);
        const double off_before = std::fabs(best.first - magnitude);
        if (off < off_before || (off == off_before && one.second % 2 == 0)) best = one;
      }
      return best.second;
    };
    const auto check = [&](float value) {
      const std::uint8_t code = nearest(std::fabs(static_cast<double>(value)));
      const bool negative = value < 0 && (code != 0 || type == ByteType::e4m3 || type == ByteType::e5m2);
      ASSERT_EQ(encode(type, value), negative ? code | 0x80 : code) << static_cast<int>(type) << " " << value;
    };
    std::uint32_t state = 3;
    for (int i = 0; i < 20'000; ++i) {
      state = (state * 1664525U) + 1013904223U;
      // Numbers of any size; and of the sizes that have codes.
      if (const auto any = std::bit_cast<float>(state); std::isfinite(any)) check(any);
      check(std::bit_cast<float>((state & 0x80FFFFFFU) | 0x37000000U) * ((state >> 24 & 1) != 0 ? 0x1p12F : 0x1p24F));
    }
    for (std::size_t i = 1; i < magnitudes.size(); ++i) {
      const auto tie = static_cast<float>((magnitudes[i - 1].first + magnitudes[i].first) / 2);
      for (const float value : {tie, std::nextafter(tie, 0.0F), std::nextafter(tie, 1e9F)})
        for (const float sign : {1.0F, -1.0F}) check(sign * value);
    }
  }
}

TEST(ByteFloatTest, InfinityAndIntegers) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(encode(ByteType::e5m2, -infinity), 0xFC);
  EXPECT_EQ(encode(ByteType::e4m3, infinity), 0x7E);
  EXPECT_EQ(encode(ByteType::e4m3_fnuz, -infinity), 0xFF);
  EXPECT_EQ(encode(ByteType::e5m2_fnuz, -0.0F), 0);
  EXPECT_EQ(encode(ByteType::i8, 2.5F), 2);
  EXPECT_EQ(encode(ByteType::i8, -3.5F), 0xFC);
  EXPECT_EQ(encode(ByteType::i8, 1e9F), 0x7F);
  EXPECT_EQ(encode(ByteType::i8, -infinity), 0x80);
}

}  // namespace
}  // namespace wavejit::tools
