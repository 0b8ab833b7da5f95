// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Floats of 8, 6 and 4 bits as their definitions have them, by tables: OCP 8-bit Floating Point Specification 1.0
// (e4m3, e5m2), the forms without infinity and negative zero (FNUZ: bias one higher, 0x80 the only NaN), and OCP
// Microscaling Formats 1.0 (e2m3, e3m2, e2m1: finite numbers only).
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace wavejit::simgpu::test {

struct Format {
  const char* processor;
  const char* name;  // as instructions call it
  int exponent_bits;
  int mantissa_bits;
  int bias;
  bool fnuz = false;
  bool finite = false;  // has neither infinity nor NaN

  unsigned sign_bit() const { return 1U << (exponent_bits + mantissa_bits); }
  bool has_infinity() const { return !fnuz && !finite && mantissa_bits == 2; }
  bool is_nan(unsigned byte) const {
    if (finite) return false;
    if (fnuz) return byte == 0x80;
    return has_infinity() ? (byte & 0x7f) > 0x7c : (byte & 0x7f) == 0x7f;
  }
  bool is_infinite(unsigned byte) const { return has_infinity() && (byte & 0x7f) == 0x7c; }
  // As if every encoding were a number; so the one above the largest says where overflow begins.
  double number(unsigned byte) const {
    const auto exponent = static_cast<int>((byte & (sign_bit() - 1)) >> mantissa_bits);
    const auto mantissa = static_cast<int>(byte & ((1u << mantissa_bits) - 1));
    const double size = exponent == 0 ? std::ldexp(mantissa, 1 - bias - mantissa_bits)
                                      : std::ldexp(mantissa + (1 << mantissa_bits), exponent - bias - mantissa_bits);
    return (byte & sign_bit()) != 0 ? -size : size;
  }
  double value(unsigned byte) const {
    if (is_nan(byte)) return std::numeric_limits<double>::quiet_NaN();
    if (is_infinite(byte)) return std::copysign(std::numeric_limits<double>::infinity(), number(byte));
    return number(byte);
  }
  unsigned largest() const {
    unsigned byte = sign_bit() - 1;
    while (is_nan(byte) || is_infinite(byte)) --byte;
    return byte;
  }
  // One step beyond the largest, in the format's own grid.
  double beyond() const { return number(largest()) + (number(largest()) - number(largest() - 1)); }

  // Nearest, ties to the even encoding, found by looking through the table. `clamps`: MODE.FP16_OVFL.
  unsigned nearest(double x, bool clamps) const {
    const unsigned sign = std::signbit(x) ? sign_bit() : 0;
    const unsigned not_a_number = fnuz ? 0x80 : sign | 0x7f;
    if (std::isnan(x)) return not_a_number;
    const unsigned overflow = finite ? sign | largest() : has_infinity() ? sign | 0x7c : not_a_number;
    if (std::isinf(x)) return overflow;
    // Beyond the step beyond, distances of a float64 may no longer differ.
    const double size = std::min(std::abs(x), 2 * beyond());
    unsigned best = 0;
    double distance = size;
    for (unsigned byte = 1; byte <= largest() + 1; ++byte) {
      const double here = byte == largest() + 1 ? beyond() : number(byte);
      const double off = std::abs(here - size);
      if (off < distance || (off == distance && byte % 2 == 0)) {
        best = byte;
        distance = off;
      }
    }
    if (best > largest()) return clamps ? sign | largest() : overflow;
    return fnuz && best == 0 ? 0 : sign | best;
  }
};

// What the wide side of a scaled conversion is.
struct Wide {
  const char* name;
  int digits;        // of the significand, the leading one included
  int least;         // exponent of the smallest subnormal
  double too_large;  // from here on it is infinite
};
inline constexpr Wide wides[] = {{"f32", 24, -149, 0x1p128}, {"f16", 11, -24, 65520.0}, {"bf16", 8, -133, 0x1p128}};

inline double rounded_to(const Wide& wide, double x) {
  if (x == 0 || !std::isfinite(x)) return x;
  if (std::abs(x) >= wide.too_large) return std::copysign(std::numeric_limits<double>::infinity(), x);
  int exponent = 0;
  std::frexp(x, &exponent);
  const int unit = std::max(exponent - wide.digits, wide.least);
  return std::ldexp(std::nearbyint(std::ldexp(x, -unit)), unit);
}

inline double decoded(const Wide& wide, std::uint32_t bits) {
  if (std::string_view(wide.name) == "f32") return std::bit_cast<float>(bits);
  if (std::string_view(wide.name) == "bf16") return std::bit_cast<float>(bits << 16);
  return static_cast<double>(std::bit_cast<_Float16>(static_cast<std::uint16_t>(bits)));
}
inline std::uint32_t encoded(const Wide& wide, double x) {
  if (std::string_view(wide.name) == "f32") return std::bit_cast<std::uint32_t>(static_cast<float>(x));
  if (std::string_view(wide.name) == "bf16") return std::bit_cast<std::uint32_t>(static_cast<float>(x)) >> 16;
  return std::bit_cast<std::uint16_t>(static_cast<_Float16>(x));
}

inline void expect_number(double got, double expected, const std::string& what) {
  if (std::isnan(expected)) {
    EXPECT_TRUE(std::isnan(got)) << what << ": " << got;
    return;
  }
  EXPECT_EQ(got, expected) << what;
  EXPECT_EQ(std::signbit(got), std::signbit(expected)) << what;
}

// Numbers at which a mistake in rounding shows. All are exact in float32.
inline std::vector<double> telling_numbers(const Format& format) {
  std::vector<double> numbers{0.0,
                              -0.0,
                              std::numeric_limits<double>::infinity(),
                              -std::numeric_limits<double>::infinity(),
                              std::numeric_limits<double>::quiet_NaN(),
                              0x1p-149,
                              -0x1p-126,
                              0x1p127,
                              65504.0};
  const auto add = [&](double x) {
    for (const double sign : {1.0, -1.0}) {
      numbers.push_back(sign * x);
      numbers.push_back(sign * std::nextafter(static_cast<float>(x), 0.0F));
      numbers.push_back(sign * std::nextafter(static_cast<float>(x), std::numeric_limits<float>::infinity()));
    }
  };
  for (unsigned byte = 0; byte <= format.largest(); ++byte) {
    const double here = format.number(byte);
    const double above = byte == format.largest() ? format.beyond() : format.number(byte + 1);
    if (here != 0) add(here);
    add((here + above) / 2);
  }
  add(format.beyond());
  add(2 * format.beyond());
  return numbers;
}

}  // namespace wavejit::simgpu::test
