// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What v_exp, v_log, v_rcp, v_rsq and v_sqrt may give instead of the nearest float
// (WAVEJIT_SIM_TRANSCENDENTALS=seeded).
//
// The ISA promises 1 ulp for float32 and 0.51 ulp for float16 ("1ULP accuracy" and "0.51ULP accuracy" under each
// instruction). Two float32 lie within 1 ulp of an exact value that is none itself: its neighbours. Which one it is, is
// a fixed function of instruction, operand and key. A value that is a float stays what it is: the ISA's own examples
// say so (rcp(-2) = -0.5, sqrt(4) = 2, exp(-0) = 1, log(1) = 0), and so do zeros, infinities and NaN. Of float16 only
// values that lie within a hundredth of the middle between two have a choice.
#pragma once

#include "simgpu/machine/numerics/bits.h"
#include "simgpu/machine/numerics/small_floats.h"
#include "simgpu/machine/numerics/transcendental.h"

namespace wavejit::simgpu::numerics {

enum class Transcendental : std::uint32_t {
  exp_f32 = 1,
  log_f32,
  rcp_f32,
  rsq_f32,
  sqrt_f32,
  exp_f16,
  log_f16,
  rcp_f16,
  rsq_f16,
  sqrt_f16,
};

// The finaliser of MurmurHash3 (public domain), its highest bit.
WAVEJIT_LANE_FUNCTION bool is_picked(std::uint32_t key, Transcendental function, std::uint32_t operand) {
  std::uint32_t mixed = (operand + static_cast<std::uint32_t>(function) * 0x9e3779b9u) ^ key;
  mixed = (mixed ^ (mixed >> 16)) * 0x85ebca6bu;
  mixed = (mixed ^ (mixed >> 13)) * 0xc2b2ae35u;
  return ((mixed ^ (mixed >> 16)) >> 31) != 0;
}

// What remains of the distance that the ISA permits once 2^-34, the error of `exact`, is taken off.
static constexpr double permitted_f32 = 1.0 - 0x1p-9;
static constexpr double permitted_f16 = 0.51 - 0x1p-10;

// The neighbour of `nearest` on the side of `exact`, where it is picked and permitted; otherwise `nearest`. Both are
// normal numbers: denormal results are flushed, and a result that is not finite is what the ISA says.
WAVEJIT_LANE_FUNCTION float permitted_near(float nearest, double exact, bool picked) {
  const std::uint32_t bits = bits_of(nearest);
  const bool outward = magnitude(exact) > static_cast<double>(magnitude(nearest));
  const std::uint32_t other = outward ? bits + 1 : bits - 1;
  const std::uint32_t inner = outward ? bits : other;
  const double unit = double_of(static_cast<std::uint64_t>(((inner >> 23) & 0xffu) + 1023 - 127 - 23) << 52);
  const double distance = magnitude(static_cast<double>(float_of(other)) - exact);
  const bool is_between = exact != static_cast<double>(nearest) && distance < permitted_f32 * unit;
  const bool are_normal = ((bits >> 23) & 0xffu) - 1 < 254 && ((other >> 23) & 0xffu) - 1 < 254;
  return picked && is_between && are_normal ? float_of(other) : nearest;
}

// The same in float16, as a float32 that converts exactly. Denormals are kept.
WAVEJIT_LANE_FUNCTION float permitted_half_near(float exact, bool picked) {
  const std::uint32_t bits = f32_to_f16(exact);
  const float nearest = f16_to_f32(bits);
  const bool outward = magnitude(exact) > magnitude(nearest);
  const std::uint32_t other = outward ? bits + 1 : bits - 1;
  const std::uint32_t field = ((outward ? bits : other) >> 10) & 31;
  const float unit = float_of(((field == 0 ? 1 : field) + 127 - 15 - 10) << 23);
  const double distance = magnitude(static_cast<double>(f16_to_f32(other)) - static_cast<double>(exact));
  const bool is_between = exact != nearest && distance <= permitted_f16 * static_cast<double>(unit);
  const bool are_finite = ((bits >> 10) & 31) != 31 && ((other >> 10) & 31) != 31;
  return picked && is_between && are_finite ? f16_to_f32(other) : exact;
}

WAVEJIT_LANE_FUNCTION float permitted_exp2_f32(std::uint32_t key, float x) {
  const bool inside = x >= -126.0f && x < 128.0f;
  const float some = inside ? x : 0.0f;
  const float whole = __builtin_roundevenf(some);
  const auto f = static_cast<double>(some - whole);
  double sum = exp2_coefficients[0];
  for (unsigned i = 1; i < 8; ++i) sum = __builtin_fma(sum, f, exp2_coefficients[i]);
  const double exact = sum * power_of_two(static_cast<int>(whole));
  // As exp2_f32, without a second polynomial: between the ends all is normal, and rounding minds no power of two.
  const float outside = is_nan(x) ? quiet(x) : x < 0.0f ? 0.0f : float_of(0x7f800000u);
  const float nearest = inside ? static_cast<float>(exact) : outside;
  return permitted_near(nearest, exact, inside && is_picked(key, Transcendental::exp_f32, bits_of(x)));
}

WAVEJIT_LANE_FUNCTION float permitted_log2_f32(std::uint32_t key, float x) {
  const float a = flushed(x);
  const bool usable = a > 0.0f && a <= 3.40282346638528859812e38f;
  const double exact = log2_core(usable ? static_cast<double>(a) : 1.0);
  return permitted_near(log2_f32(x), exact, is_picked(key, Transcendental::log_f32, bits_of(x)));
}

WAVEJIT_LANE_FUNCTION float permitted_reciprocal_f32(std::uint32_t key, float x) {
  const double exact = 1.0 / static_cast<double>(flushed(x));
  return permitted_near(reciprocal_f32(x), exact, is_picked(key, Transcendental::rcp_f32, bits_of(x)));
}

WAVEJIT_LANE_FUNCTION float permitted_square_root_f32(std::uint32_t key, float x) {
  const float a = flushed(x);
  const double exact = __builtin_sqrt(a < 0.0f ? 0.0 : static_cast<double>(a));
  return permitted_near(square_root_f32(x), exact, is_picked(key, Transcendental::sqrt_f32, bits_of(x)));
}

WAVEJIT_LANE_FUNCTION float permitted_reciprocal_square_root_f32(std::uint32_t key, float x) {
  const float a = flushed(x);
  const double exact = 1.0 / __builtin_sqrt(a < 0.0f ? 1.0 : static_cast<double>(a));
  return permitted_near(reciprocal_square_root_f32(x), exact, is_picked(key, Transcendental::rsq_f32, bits_of(x)));
}

}  // namespace wavejit::simgpu::numerics
