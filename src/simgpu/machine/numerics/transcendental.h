// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// exp2, log2, reciprocal, roots, sine and cosine, within the ISA's one-ulp class and the same bits on every host.
//
// Each is computed in float64 with a fixed polynomial (fused operations in exp2 alone), then rounded once: at most 0.51
// ulp of float32 (tests/simgpu/semantics measures it). Range reduction is exact. No libm.
#pragma once

#include "simgpu/machine/numerics/bits.h"

namespace wavejit::simgpu::numerics {

// 2^power for -1022 <= power <= 1023.
WAVEJIT_LANE_FUNCTION double power_of_two(int power) {
  return double_of(static_cast<std::uint64_t>(static_cast<std::int64_t>(power) + 1023) << 52);
}

// 2^f for |f| <= 1/2, as the coefficients of f^7, f^6 … f^0: minimax (fitted by reweighted least squares), relative
// error below 2^-34. The compiled engine reads them, too.
static constexpr double exp2_coefficients[8] = {
    0x1.fde5fdb60c021p-17, 0x1.445c8407b747bp-13, 0x1.5d8a85fefd5a9p-10, 0x1.3b29f39d47c7bp-7,
    0x1.c6b08ac06b90fp-5,  0x1.ebfbe077872d6p-3,  0x1.62e42ff0e1922p-1,  1.0};
// 3 * 2^22: added to a whole number it leaves that number in the lowest bits.
static constexpr float exp2_whole = 12582912.0f;

// Denormals are flushed on both sides (LLVM scales around v_exp_f32 for that reason: AMDGPULegalizerInfo, fexp2).
// Between the ends 2^x is a normal number, so that multiplying by 2^whole only moves the exponent.
WAVEJIT_LANE_FUNCTION float exp2_f32(float x) {
  const float whole = __builtin_roundevenf(x);
  const auto f = static_cast<double>(x - whole);
  double sum = exp2_coefficients[0];
  for (unsigned i = 1; i < 8; ++i) sum = __builtin_fma(sum, f, exp2_coefficients[i]);
  const std::uint32_t moved = bits_of(static_cast<float>(sum)) + (bits_of(whole + exp2_whole) << 23);
  const float inside = x < -126.0f ? 0.0f : float_of(moved);
  const float result = x >= 128.0f ? float_of(0x7f800000u) : inside;
  return is_nan(x) ? quiet(x) : result;
}

// log2 of a positive normal float64.
WAVEJIT_LANE_FUNCTION double log2_core(double x) {
  const std::uint64_t bits = bits_of(x);
  // Split at sqrt(2)/2, so that the logarithm of the mantissa keeps its relative precision around 1.
  const std::uint64_t shifted = bits - 0x3fe6a09e667f3bcdu;
  const auto exponent = static_cast<int>(static_cast<std::int64_t>(shifted) >> 52);
  const double m = double_of(bits - (static_cast<std::uint64_t>(static_cast<std::int64_t>(exponent)) << 52));
  // log(m) = 2 atanh(s), |s| <= 0.1716: the first omitted term is below 2^-42 of the sum.
  const double s = (m - 1.0) / (m + 1.0);
  const double z = s * s;
  double sum = 1.0 / 15;
  sum = sum * z + 1.0 / 13;
  sum = sum * z + 1.0 / 11;
  sum = sum * z + 1.0 / 9;
  sum = sum * z + 1.0 / 7;
  sum = sum * z + 1.0 / 5;
  sum = sum * z + 1.0 / 3;
  sum = sum * z + 1.0;
  return static_cast<double>(exponent) + (s * sum) * 2.8853900817779268147;  // 2/ln 2
}

// Flushes input denormals, as LLVM's lowering of log2 assumes.
WAVEJIT_LANE_FUNCTION float log2_f32(float x) {
  const float a = flushed(x);
  const bool usable = a > 0.0f && a <= 3.40282346638528859812e38f;
  const auto result = static_cast<float>(log2_core(usable ? static_cast<double>(a) : 1.0));
  const float infinite = bits_of(a) == 0x7f800000u ? a : float_of(default_nan_f32);
  const float special = (bits_of(a) & 0x7fffffffu) == 0 ? float_of(0xff800000u) : infinite;
  return is_nan(x) ? quiet(x) : (usable ? result : special);
}

WAVEJIT_LANE_FUNCTION float reciprocal_f32(float x) {
  const float result = flushed(1.0f / flushed(x));
  return is_nan(x) ? quiet(x) : result;
}

WAVEJIT_LANE_FUNCTION float square_root_f32(float x) {
  const float a = flushed(x);
  const float result = __builtin_sqrtf(a < 0.0f ? 0.0f : a);
  return is_nan(x) ? quiet(x) : (a < 0.0f ? float_of(default_nan_f32) : result);
}

WAVEJIT_LANE_FUNCTION float reciprocal_square_root_f32(float x) {
  const float a = flushed(x);
  const bool negative = a < 0.0f;
  const auto result = static_cast<float>(1.0 / __builtin_sqrt(negative ? 1.0 : static_cast<double>(a)));
  return is_nan(x) ? quiet(x) : (negative ? float_of(default_nan_f32) : result);
}

// sin(2*pi*r), |r| <= 1/4.
WAVEJIT_LANE_FUNCTION double sine_of_quarter_turns(double r) {
  const double y = r * 6.283185307179586476925;
  const double z = y * y;
  double sum = 1.0 / 355687428096000.0;
  sum = sum * z - 1.0 / 1307674368000.0;
  sum = sum * z + 1.0 / 6227020800.0;
  sum = sum * z - 1.0 / 39916800.0;
  sum = sum * z + 1.0 / 362880.0;
  sum = sum * z - 1.0 / 5040.0;
  sum = sum * z + 1.0 / 120.0;
  sum = sum * z - 1.0 / 6.0;
  sum = sum * z + 1.0;
  return y * sum;
}

// The fraction of a turn in [-1/2, 1/2], exactly.
WAVEJIT_LANE_FUNCTION double turn_fraction(float x) {
  const auto wide = static_cast<double>(x);
  return wide - __builtin_roundeven(wide);
}

// sin(2*pi*x): the operand is in turns. The ISA promises |x| <= 256 only; whole turns beyond it give 0, as its
// examples.
WAVEJIT_LANE_FUNCTION float sine_f32(float x) {
  const bool finite = magnitude(x) <= 3.40282346638528859812e38f;
  const double r = turn_fraction(finite ? x : 0.0f);
  const double side = r < 0.0 ? -0.5 : 0.5;
  const double reduced = magnitude(r) > 0.25 ? side - r : r;
  const auto result = static_cast<float>(sine_of_quarter_turns(reduced));
  const float special = is_nan(x) ? quiet(x) : float_of(default_nan_f32);
  return finite ? (x == 0.0f ? x : result) : special;
}

WAVEJIT_LANE_FUNCTION float cosine_f32(float x) {
  const bool finite = magnitude(x) <= 3.40282346638528859812e38f;
  const double r = turn_fraction(finite ? x : 0.0f);
  const auto result = static_cast<float>(sine_of_quarter_turns(0.25 - magnitude(r)));
  const float special = is_nan(x) ? quiet(x) : float_of(default_nan_f32);
  return finite ? result : special;
}

}  // namespace wavejit::simgpu::numerics
