// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The parts of float32 and float64 instructions that have rules of their own: NaN handling of minimum and maximum,
// frexp and ldexp, and the helpers of the division sequence. From the pseudo-code of the CDNA3 ISA unless noted.
#pragma once

#include "simgpu/machine/numerics/bits.h"
#include "simgpu/machine/numerics/transcendental.h"

namespace wavejit::simgpu::numerics {

template <typename Float>
WAVEJIT_LANE_FUNCTION Float minimum_of(bool ieee, Float a, Float b) {
  const bool zeros = a == Float{0} && b == Float{0};
  const Float ordered = zeros ? (is_negative(b) ? b : a) : (a < b ? a : b);
  const Float number = is_nan(a) ? b : (is_nan(b) ? a : ordered);
  const Float second = ieee && is_signalling(b) ? quiet(b) : number;
  return ieee && is_signalling(a) ? quiet(a) : second;
}

template <typename Float>
WAVEJIT_LANE_FUNCTION Float maximum_of(bool ieee, Float a, Float b) {
  const bool zeros = a == Float{0} && b == Float{0};
  const Float ordered = zeros ? (is_negative(a) ? b : a) : (a > b ? a : b);
  const Float number = is_nan(a) ? b : (is_nan(b) ? a : ordered);
  const Float second = ieee && is_signalling(b) ? quiet(b) : number;
  return ieee && is_signalling(a) ? quiet(a) : second;
}

template <typename Float>
WAVEJIT_LANE_FUNCTION Float median_of(bool ieee, Float x, Float y, Float z) {
  const Float largest = maximum_of(ieee, maximum_of(ieee, x, y), z);
  const Float rest = largest == x   ? maximum_of(ieee, y, z)
                     : largest == y ? maximum_of(ieee, x, z)
                                    : maximum_of(ieee, x, y);
  const bool any_nan = is_nan(x) || is_nan(y) || is_nan(z);
  return any_nan ? minimum_of(ieee, minimum_of(ieee, x, y), z) : rest;
}

// IEEE 754-2019 minimum and maximum: NaN wins, -0 is below +0.
template <typename Float>
WAVEJIT_LANE_FUNCTION Float ieee_minimum(Float a, Float b) {
  const bool zeros = a == Float{0} && b == Float{0};
  const Float ordered = zeros ? (is_negative(b) ? b : a) : (a < b ? a : b);
  return is_nan(a) ? quiet(a) : (is_nan(b) ? quiet(b) : ordered);
}
template <typename Float>
WAVEJIT_LANE_FUNCTION Float ieee_maximum(Float a, Float b) {
  const bool zeros = a == Float{0} && b == Float{0};
  const Float ordered = zeros ? (is_negative(a) ? b : a) : (a > b ? a : b);
  return is_nan(a) ? quiet(a) : (is_nan(b) ? quiet(b) : ordered);
}

// v_fract stays below one: LLVM replaces min(x - floor(x), 1 - ulp) by it (AMDGPUCodeGenPrepare, matchFractPat).
WAVEJIT_LANE_FUNCTION float fraction_of(float a) {
  const float r = a - __builtin_floorf(a);
  return is_nan(a) ? quiet(a) : (is_nan(r) ? default_nan(r) : (r < 1.0f ? r : 0x1.fffffep-1f));
}
WAVEJIT_LANE_FUNCTION double fraction_of(double a) {
  const double r = a - __builtin_floor(a);
  return is_nan(a) ? quiet(a) : (is_nan(r) ? default_nan(r) : (r < 1.0 ? r : 0x1.fffffffffffffp-1));
}

WAVEJIT_LANE_FUNCTION float mantissa_of(float a) {
  const bool denormal = exponent_field(a) == 0;
  const std::uint32_t bits = bits_of(denormal ? a * 0x1p32f : a);
  const float result = float_of((bits & 0x807fffffu) | 0x3f000000u);
  return is_nan(a) ? quiet(a) : (a == 0.0f || exponent_field(a) == 255 ? a : result);
}
WAVEJIT_LANE_FUNCTION double mantissa_of(double a) {
  const bool denormal = exponent_field(a) == 0;
  const std::uint64_t bits = bits_of(denormal ? a * 0x1p64 : a);
  const double result = double_of((bits & 0x800fffffffffffffu) | 0x3fe0000000000000u);
  return is_nan(a) ? quiet(a) : (a == 0.0 || exponent_field(a) == 2047 ? a : result);
}
WAVEJIT_LANE_FUNCTION int exponent_of(float a) {
  const bool denormal = exponent_field(a) == 0;
  const int exponent = exponent_field(denormal ? a * 0x1p32f : a) - (denormal ? 32 : 0) - 126;
  return a == 0.0f || exponent_field(a) == 255 ? 0 : exponent;
}
WAVEJIT_LANE_FUNCTION int exponent_of(double a) {
  const bool denormal = exponent_field(a) == 0;
  const int exponent = exponent_field(denormal ? a * 0x1p64 : a) - (denormal ? 64 : 0) - 1022;
  return a == 0.0 || exponent_field(a) == 2047 ? 0 : exponent;
}

// a * 2^power, rounded once.
WAVEJIT_LANE_FUNCTION float scaled_by(float a, int power) {
  const int bounded = power > 300 ? 300 : (power < -300 ? -300 : power);
  const auto result = static_cast<float>(static_cast<double>(a) * power_of_two(bounded));
  return is_nan(a) ? quiet(a) : result;
}
WAVEJIT_LANE_FUNCTION double scaled_by(double a, int power) {
  int rest = power > 2200 ? 2200 : (power < -2200 ? -2200 : power);
  double result = a;
  // Large steps that stay exact until the last multiplication: downward ones keep 53 bits of room above the denormals.
  for (int step = 0; step < 2; ++step) {
    if (rest > 1023) {
      result *= 0x1p1023;
      rest -= 1023;
    } else if (rest < -1022) {
      result *= 0x1p-969;
      rest += 969;
    }
  }
  if (rest > 1023) rest = 1023;
  if (rest < -1022) rest = -1022;
  result *= power_of_two(rest);
  return is_nan(a) ? quiet(a) : result;
}

template <typename Float>
struct ScaledOperand {
  Float result;
  bool carry;
};

WAVEJIT_LANE_FUNCTION bool is_denormal(float a) { return exponent_field(a) == 0 && a != 0.0f; }
WAVEJIT_LANE_FUNCTION bool is_denormal(double a) { return exponent_field(a) == 0 && a != 0.0; }
// 1/d is denormal: |d| above 2^126 or 2^1022.
WAVEJIT_LANE_FUNCTION bool reciprocal_is_denormal(float d) { return magnitude(d) > 0x1p126f && magnitude(d) < 0x1p128; }
WAVEJIT_LANE_FUNCTION bool reciprocal_is_denormal(double d) {
  return magnitude(d) > 0x1p1022 && exponent_field(d) != 2047;
}
WAVEJIT_LANE_FUNCTION bool quotient_is_denormal(float n, float d) {
  const double q = magnitude(static_cast<double>(n) / static_cast<double>(d));
  return q < 0x1p-126 && q != 0.0;
}
WAVEJIT_LANE_FUNCTION bool quotient_is_denormal(double n, double d) { return is_denormal(n / d); }

// v_div_scale: s0 is the operand to scale (denominator or numerator), s1 the denominator, s2 the numerator. The bit
// says that v_div_fmas must scale back.
template <typename Float>
WAVEJIT_LANE_FUNCTION ScaledOperand<Float> division_scale(Float s0, Float s1, Float s2) {
  constexpr bool wide = sizeof(Float) == 8;
  constexpr int power = wide ? 128 : 64;
  const int distance = exponent_field(s2) - exponent_field(s1);
  if (s2 == Float{0} || s1 == Float{0}) return {default_nan(s0), false};
  if (distance >= (wide ? 768 : 96)) return {s0 == s1 ? scaled_by(s0, power) : s0, true};
  if (is_denormal(s1)) return {scaled_by(s0, power), false};
  const bool tiny_quotient = quotient_is_denormal(s2, s1);
  if (reciprocal_is_denormal(s1)) {
    // The pseudo-code scales the denominator up here, out of range; only down gives v_div_fmas something to undo.
    if (tiny_quotient) return {s0 == s1 ? scaled_by(s0, -power) : s0, true};
    return {scaled_by(s0, -power), false};
  }
  if (tiny_quotient) return {s0 == s2 ? scaled_by(s0, power) : s0, true};
  if (exponent_field(s2) <= (wide ? 53 : 23)) return {scaled_by(s0, power), false};
  return {s0, false};
}

// v_div_fmas. The published pseudo-code scales by 2^32 (2^64), which does not undo v_div_scale; what does is 2^±64
// (2^±128) by the size of the quotient estimate, rounded once so that denormal quotients are right.
template <typename Float>
WAVEJIT_LANE_FUNCTION Float division_fmas(Float a, Float b, Float c, bool scale) {
  constexpr bool wide = sizeof(Float) == 8;
  constexpr Float up = wide ? static_cast<Float>(0x1p128) : static_cast<Float>(0x1p64);
  constexpr Float down = wide ? static_cast<Float>(0x1p-128) : static_cast<Float>(0x1p-64);
  // Half of the smallest denormal, before scaling down.
  constexpr Float half = wide ? static_cast<Float>(0x1p-947) : static_cast<Float>(0x1p-86);
  const Float sum = fused(a, b, c);
  if (!scale) return with_nan_of(sum, a, b, c);
  if (exponent_field(c) > (wide ? 1023 : 127)) return with_nan_of(sum * up, a, b, c);
  // The second rounding only goes wrong where the first one ended on a tie: its error, exact because c dominates the
  // sum, then says which side the true value is on.
  const Float error = fused(a, b, c - sum);
  const Float rounded = sum * down;
  const Float kept = rounded * up;
  const Float lost = sum - kept;
  const bool beyond = is_negative(error) == is_negative(lost);
  const bool tie = magnitude(lost) == half && error != Float{0};
  const Float result = tie ? (beyond ? kept + (lost + lost) : kept) * down : rounded;
  return with_nan_of(result, a, b, c);
}

// v_div_fixup: s0 is the quotient, s1 the denominator, s2 the numerator.
template <typename Float>
WAVEJIT_LANE_FUNCTION Float division_fixup(Float s0, Float s1, Float s2) {
  constexpr bool wide = sizeof(Float) == 8;
  constexpr int special = wide ? 2047 : 255;
  const bool negative = is_negative(s1) != is_negative(s2);
  const auto with_sign = [&](Float value) { return negative ? negated(magnitude(value)) : magnitude(value); };
  if (is_nan(s2)) return quiet(s2);
  if (is_nan(s1)) return quiet(s1);
  const bool infinite1 = exponent_field(s1) == special;
  const bool infinite2 = exponent_field(s2) == special;
  if ((s1 == Float{0} && s2 == Float{0}) || (infinite1 && infinite2)) return default_nan(s0);
  const Float infinity =
      wide ? static_cast<Float>(double_of(0x7ff0000000000000u)) : static_cast<Float>(float_of(0x7f800000u));
  if (s1 == Float{0} || infinite2) return with_sign(infinity);
  if (infinite1 || s2 == Float{0}) return with_sign(Float{0});
  if (exponent_field(s2) - exponent_field(s1) < (wide ? -1075 : -150)) return with_sign(Float{0});
  // A quotient beyond the largest number has turned into NaN in the refinement steps (inf - inf).
  if (is_nan(s0)) return with_sign(infinity);
  return with_sign(s0);
}

}  // namespace wavejit::simgpu::numerics
