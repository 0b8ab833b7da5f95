// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Conversions between float32 and the narrower formats: float16, bfloat16, and the 8-, 6- and 4-bit floats.
// Integer arithmetic throughout, so that the results do not depend on the host's rounding mode or conversion hardware.
#pragma once

#include "simgpu/machine/numerics/bits.h"

namespace wavejit::simgpu::numerics {

// As MODE encodes it (CDNA3 ISA, "MODE register", FP_ROUND).
enum class Rounding : std::uint8_t { nearest_even = 0, up = 1, down = 2, toward_zero = 3 };

WAVEJIT_LANE_FUNCTION float f16_to_f32(std::uint32_t half) {
  const std::uint32_t rest = half & 0x7fffu;
  // Scaling by 2^112 moves the exponent bias; float16 denormals come out normalised because they are read as float32
  // denormals before it.
  const float scaled = float_of(rest << 13) * 0x1p112f;
  const std::uint32_t bits = rest >= 0x7c00u ? (0x7f800000u | (rest << 13)) : bits_of(scaled);
  return float_of(bits | ((half & 0x8000u) << 16));
}

// Round to nearest even; NaN keeps the upper payload bits and becomes quiet.
WAVEJIT_LANE_FUNCTION std::uint32_t f32_to_f16(float value) {
  const std::uint32_t bits = bits_of(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000u;
  const std::uint32_t rest = bits & 0x7fffffffu;
  const std::uint32_t normal = (rest - 0x38000000u + 0xfffu + ((rest >> 13) & 1u)) >> 13;
  // Below 2^-14 the result is a multiple of 2^-24: adding 0.5 lets the float32 adder round there.
  const std::uint32_t denormal = bits_of(float_of(rest) + 0.5f) - 0x3f000000u;
  const std::uint32_t special = rest > 0x7f800000u ? (0x7e00u | ((rest >> 13) & 0x3ffu)) : 0x7c00u;
  const std::uint32_t finite = rest < 0x38800000u ? denormal : normal;
  return sign | (rest >= 0x47800000u ? special : finite);
}

WAVEJIT_LANE_FUNCTION std::uint32_t f32_to_f16(float value, Rounding rounding) {
  const std::uint32_t bits = bits_of(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000u;
  const std::uint32_t rest = bits & 0x7fffffffu;
  if (rest > 0x7f800000u) return sign | 0x7e00u | ((rest >> 13) & 0x3ffu);
  if (rest == 0x7f800000u) return sign | 0x7c00u;
  const int exponent = static_cast<int>(rest >> 23) - 127;
  std::uint64_t mantissa = rest & 0x7fffffu;
  if ((rest >> 23) != 0) mantissa |= 0x800000u;
  // Drop this many mantissa bits: 13 for normal results, more below 2^-14.
  int drop = 13;
  std::uint32_t base = 0;
  if (exponent >= -14) {
    base = static_cast<std::uint32_t>(exponent + 14) << 10;  // the leading one adds one more to the exponent field
  } else {
    drop += -14 - exponent;
    if (drop > 40) drop = 40;
  }
  const std::uint64_t kept = mantissa >> drop;
  const std::uint64_t lost = mantissa & ((std::uint64_t{1} << drop) - 1);
  const std::uint64_t half = std::uint64_t{1} << (drop - 1);
  bool increment = false;
  switch (rounding) {
    case Rounding::nearest_even:
      increment = lost > half || (lost == half && (kept & 1) != 0);
      break;
    case Rounding::up:
      increment = lost != 0 && sign == 0;
      break;
    case Rounding::down:
      increment = lost != 0 && sign != 0;
      break;
    case Rounding::toward_zero:
      break;
  }
  std::uint32_t result = base + static_cast<std::uint32_t>(kept) + (increment ? 1u : 0u);
  if (result >= 0x7c00u) {
    const bool to_infinity = rounding == Rounding::nearest_even || (rounding == Rounding::up && sign == 0) ||
                             (rounding == Rounding::down && sign != 0);
    result = to_infinity ? 0x7c00u : 0x7bffu;
  }
  return sign | result;
}

// A float32 that rounds to float16 as the float64 would, in every rounding mode: rounded to odd, which keeps "inexact"
// in the last bit.
WAVEJIT_LANE_FUNCTION float narrowed_to_odd(double value) {
  const auto nearest = static_cast<float>(value);
  const std::uint32_t bits = bits_of(nearest);
  const bool too_far = magnitude(static_cast<double>(nearest)) > magnitude(value);
  const bool inexact = static_cast<double>(nearest) != value;
  const std::uint32_t odd = (too_far ? bits - 1 : bits) | 1u;
  return is_nan(value) || !inexact ? nearest : float_of(odd);
}

WAVEJIT_LANE_FUNCTION float bf16_to_f32(std::uint32_t half) { return float_of(half << 16); }

// Round to nearest even; NaN becomes quiet.
WAVEJIT_LANE_FUNCTION std::uint32_t f32_to_bf16(float value) {
  const std::uint32_t bits = bits_of(value);
  const std::uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  return is_nan(value) ? ((bits >> 16) | 0x40u) : rounded;
}

// Formats of 8 bits and fewer.
//   fnuz (gfx942): no infinity, no negative zero; 0x80 is the only NaN.
//   OCP (gfx950):  e4m3 has no infinity and NaN 0x7f; e5m2 is like IEEE.
//   e2m3, e3m2, e2m1 (OCP microscaling): finite only.
enum class Specials : std::uint8_t { fnuz, ocp_e4m3, ieee, finite };

template <int ExponentBits, int MantissaBits, int Bias, Specials Kind>
struct SmallFloat {
  static constexpr int exponent_bits = ExponentBits;
  static constexpr int mantissa_bits = MantissaBits;
  static constexpr int bits = 1 + ExponentBits + MantissaBits;
  static constexpr int bias = Bias;
  static constexpr Specials specials = Kind;
  static constexpr std::uint32_t sign_bit = 1u << (bits - 1);
  // Largest finite encoding without its sign.
  static constexpr std::uint32_t largest = Kind == Specials::ocp_e4m3 ? sign_bit - 2
                                           : Kind == Specials::ieee   ? (((1u << ExponentBits) - 1) << MantissaBits) - 1
                                                                      : sign_bit - 1;
};

using Fp8Fnuz = SmallFloat<4, 3, 8, Specials::fnuz>;
using Bf8Fnuz = SmallFloat<5, 2, 16, Specials::fnuz>;
using Fp8Ocp = SmallFloat<4, 3, 7, Specials::ocp_e4m3>;
using Bf8Ocp = SmallFloat<5, 2, 15, Specials::ieee>;
using Fp6 = SmallFloat<2, 3, 1, Specials::finite>;
using Bf6 = SmallFloat<3, 2, 3, Specials::finite>;
using Fp4 = SmallFloat<2, 1, 1, Specials::finite>;

template <typename Format>
WAVEJIT_LANE_FUNCTION float small_to_f32(std::uint32_t encoded) {
  constexpr std::uint32_t mask = (Format::sign_bit << 1) - 1;
  const std::uint32_t value = encoded & mask;
  const std::uint32_t rest = value & (Format::sign_bit - 1);
  const std::uint32_t sign = (value & Format::sign_bit) != 0 ? 0x80000000u : 0u;
  // Exact: a small integer times a power of two.
  const std::uint32_t mantissa = rest & ((1u << Format::mantissa_bits) - 1);
  const std::uint32_t exponent = rest >> Format::mantissa_bits;
  const std::uint32_t integer = exponent == 0 ? mantissa : mantissa | (1u << Format::mantissa_bits);
  const int power = static_cast<int>(exponent == 0 ? 1 : exponent) - Format::bias - Format::mantissa_bits;
  const float finite =
      static_cast<float>(static_cast<int>(integer)) * float_of(static_cast<std::uint32_t>(power + 127) << 23);
  std::uint32_t bits = bits_of(finite) | sign;
  if constexpr (Format::specials == Specials::fnuz) {
    if (value == Format::sign_bit) bits = 0x7fc00000u;
  } else if constexpr (Format::specials == Specials::ocp_e4m3) {
    if (rest == Format::sign_bit - 1) bits = sign | 0x7fc00000u;
  } else if constexpr (Format::specials == Specials::ieee) {
    if (rest > Format::largest) bits = sign | 0x7f800000u | (mantissa != 0 ? 0x00400000u | (mantissa << 21) : 0u);
  }
  return float_of(bits);
}

// `noise` is what stochastic rounding adds below the last kept bit, as a fraction of 2^32; null rounds to nearest
// even. `saturate`: finite overflow gives the largest finite value instead of infinity or NaN.
template <typename Format>
WAVEJIT_LANE_FUNCTION std::uint32_t f32_to_small(double value, bool saturate, const std::uint32_t* noise = nullptr) {
  const std::uint64_t bits = bits_of(value);
  const std::uint32_t sign = (bits >> 63) != 0 ? Format::sign_bit : 0u;
  const std::uint64_t rest = bits & 0x7fffffffffffffffu;
  const bool nan = rest > 0x7ff0000000000000u;
  const bool infinite = rest == 0x7ff0000000000000u;
  if (nan) {
    if constexpr (Format::specials == Specials::fnuz) return Format::sign_bit;
    if constexpr (Format::specials == Specials::ocp_e4m3) return sign | (Format::sign_bit - 1);
    if constexpr (Format::specials == Specials::ieee) return sign | (Format::sign_bit - 1);
    return sign | Format::largest;  // no NaN to give: the ISA leaves it open, the largest value is what clamping gives
  }
  std::uint32_t result = 0;
  bool overflow = infinite;
  if (!infinite && rest != 0) {
    const int exponent = static_cast<int>(rest >> 52) - 1023;
    std::uint64_t mantissa = (rest & 0xfffffffffffffu) | ((rest >> 52) != 0 ? 0x10000000000000u : 0u);
    constexpr int lowest = 1 - Format::bias;
    int drop = 52 - Format::mantissa_bits;
    std::uint32_t base = 0;
    if (exponent >= lowest) {
      base = static_cast<std::uint32_t>(exponent - lowest) << Format::mantissa_bits;
    } else {
      drop += lowest - exponent;
      // Far below the smallest step noise has to meet a number that is as small as it is.
      if (drop > 63) {
        mantissa = drop < 127 ? mantissa >> (drop - 63) : 0;
        drop = 63;
      }
    }
    const std::uint64_t kept = mantissa >> drop;
    const std::uint64_t lost = mantissa & ((std::uint64_t{1} << drop) - 1);
    bool increment = false;
    if (noise != nullptr) {
      const std::uint64_t scaled =
          drop >= 32 ? static_cast<std::uint64_t>(*noise) << (drop - 32) : *noise >> (32 - drop);
      increment = lost + scaled >= (std::uint64_t{1} << drop);
    } else {
      const std::uint64_t half = std::uint64_t{1} << (drop - 1);
      increment = lost > half || (lost == half && (kept & 1) != 0);
    }
    if (exponent > 1000) {
      overflow = true;
    } else {
      const std::uint64_t wide =
          (exponent - lowest > 64 ? std::uint64_t{1} << 20 : base) + kept + (increment ? 1u : 0u);
      overflow = wide > Format::largest;
      result = static_cast<std::uint32_t>(wide);
    }
  }
  if (overflow) {
    if (Format::specials == Specials::finite || (saturate && !infinite)) return sign | Format::largest;
    if constexpr (Format::specials == Specials::fnuz) return Format::sign_bit;
    if constexpr (Format::specials == Specials::ocp_e4m3) return sign | (Format::sign_bit - 1);
    return sign | (Format::largest + 1);
  }
  if (Format::specials == Specials::fnuz && result == 0) return 0;  // there is no negative zero
  return sign | result;
}

}  // namespace wavejit::simgpu::numerics
