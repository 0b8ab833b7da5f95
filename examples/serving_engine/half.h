// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// fp16 as the device stores it, to and from float, by its definition. Round to nearest, ties to even.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace serving {

using Half = std::uint16_t;

inline Half to_half(float value) {
  const std::uint32_t sign = std::signbit(value) ? 0x8000U : 0U;
  const float magnitude = std::fabs(value);
  if (!(magnitude < 65520.0F)) return static_cast<Half>(sign | (std::isnan(value) ? 0x7E00U : 0x7C00U));
  int exponent = 0;
  (void)std::frexp(magnitude, &exponent);
  exponent = std::max(exponent, -13);  // below 2^-14 the spacing stays
  const auto units = static_cast<std::uint32_t>(std::nearbyint(std::ldexp(magnitude, 11 - exponent)));
  return static_cast<Half>(sign | (units + (static_cast<std::uint32_t>(exponent + 13) << 10)));
}

inline float from_half(Half bits) {
  const int exponent = (bits >> 10) & 31;
  const int mantissa = bits & 1023;
  float magnitude = 0;
  if (exponent == 31) {
    magnitude = mantissa != 0 ? NAN : INFINITY;
  } else {
    magnitude = exponent == 0 ? std::ldexp(static_cast<float>(mantissa), -24)
                              : std::ldexp(static_cast<float>(1024 + mantissa), exponent - 25);
  }
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

}  // namespace serving
