// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Elements of 8 bits by their definitions (OCP 8-bit Floating Point Specification, revision 1.0; the FNUZ forms of
// CDNA3's ISA document; signed integers), sharing nothing with the simulated GPU or the kernels.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>

#include "wavejit/wavejit.h"

namespace wavejit::tests {

struct ByteFormat {
  wavejit_dtype dtype;
  const char* name;
  int mantissa_bits;
  int bias;
  bool fnuz;
  std::uint8_t nan;  // of integers, which have none, −128
};
inline constexpr std::array<ByteFormat, 5> byte_formats = {{{WAVEJIT_E4M3, "e4m3", 3, 7, false, 0x7F},
                                                            {WAVEJIT_E5M2, "e5m2", 2, 15, false, 0x7F},
                                                            {WAVEJIT_E4M3_FNUZ, "e4m3_fnuz", 3, 8, true, 0x80},
                                                            {WAVEJIT_E5M2_FNUZ, "e5m2_fnuz", 2, 16, true, 0x80},
                                                            {WAVEJIT_INT8, "i8", 0, 0, false, 0x80}}};
inline const ByteFormat& byte_format(wavejit_dtype dtype) {
  for (const ByteFormat& format : byte_formats)
    if (format.dtype == dtype) return format;
  return byte_formats.front();
}

inline float value_of_byte(const ByteFormat& format, std::uint8_t byte) {
  if (format.dtype == WAVEJIT_INT8) return static_cast<float>(byte < 0x80 ? byte : byte - 0x100);
  const int mantissa_steps = 1 << format.mantissa_bits;
  const int mantissa = byte % mantissa_steps;
  const int exponent = byte % 0x80 / mantissa_steps;
  const int largest_exponent = 0x80 / mantissa_steps - 1;
  const float sign = byte >= 0x80 ? -1.0F : 1.0F;
  if (format.fnuz) {
    if (byte == 0x80) return std::numeric_limits<float>::quiet_NaN();
  } else if (format.dtype == WAVEJIT_E5M2) {
    if (exponent == largest_exponent)
      return mantissa == 0 ? sign * std::numeric_limits<float>::infinity() : std::numeric_limits<float>::quiet_NaN();
  } else if (byte % 0x80 == 0x7F) {
    return std::numeric_limits<float>::quiet_NaN();
  }
  const int whole = exponent == 0 ? mantissa : mantissa_steps + mantissa;
  return sign *
         std::ldexp(static_cast<float>(whole), (exponent == 0 ? 1 : exponent) - format.bias - format.mantissa_bits);
}

// What bytes without a sign stand for, and the greatest that is finite.
struct UnsignedBytes {
  std::array<float, 0x80> values{};
  int greatest = 0;
};
inline const UnsignedBytes& unsigned_bytes(const ByteFormat& format) {
  static const auto all = [] {
    std::array<UnsignedBytes, byte_formats.size()> made;
    for (std::size_t of = 0; of < made.size(); ++of)
      for (int byte = 0; byte < 0x80; ++byte) {
        const float value = value_of_byte(byte_formats[of], static_cast<std::uint8_t>(byte));
        made[of].values[static_cast<std::size_t>(byte)] = value;
        if (std::isfinite(value)) made[of].greatest = byte;
      }
    return made;
  }();
  std::size_t of = 0;
  while (byte_formats[of].dtype != format.dtype) ++of;
  return all[of];
}

// The byte whose value is nearest, of two the one with the even mantissa; the largest finite one beyond it. NaN is NaN,
// and an infinity one where there is one.
inline std::uint8_t nearest_byte(const ByteFormat& format, float value) {
  if (std::isnan(value)) return format.nan;
  if (format.dtype == WAVEJIT_INT8) {
    const float nearest = std::min(std::max(std::nearbyint(value), -128.0F), 127.0F);
    return static_cast<std::uint8_t>(static_cast<int>(nearest) & 0xFF);
  }
  constexpr std::uint8_t infinity = 0x7C;  // of e5m2
  const UnsignedBytes& bytes = unsigned_bytes(format);
  const auto at = [&](int byte) { return bytes.values[static_cast<std::size_t>(byte)]; };
  if (std::isinf(value) && std::isinf(at(infinity))) return std::signbit(value) ? 0xFC : infinity;
  // Positive bytes ascend with their values: a search for the first that is not below.
  const float magnitude = std::fabs(value);
  int low = 0;
  int high = bytes.greatest;
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    (at(middle) <= magnitude ? low : high) = middle;
  }
  const float below = magnitude - at(low);
  const float above = at(high) - magnitude;
  const int nearest = below < above || (below == above && low % 2 == 0) ? low : high;
  const bool negative = std::signbit(value) && (nearest != 0 || !format.fnuz);  // FNUZ has no −0
  return static_cast<std::uint8_t>(nearest + (negative ? 0x80 : 0));
}

}  // namespace wavejit::tests
