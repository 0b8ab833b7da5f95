// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Looking at floats as bits, and the few facts about them that instruction semantics are made of.
//
// Everything in numerics/ has internal linkage on purpose: these headers are compiled for several host instruction
// sets, and a shared inline function could be taken by the linker from the copy that this host cannot run.
#pragma once

#include <cstdint>

#define WAVEJIT_LANE_FUNCTION [[gnu::always_inline]] static inline

namespace wavejit::simgpu::numerics {

WAVEJIT_LANE_FUNCTION std::uint32_t bits_of(float value) { return __builtin_bit_cast(std::uint32_t, value); }
WAVEJIT_LANE_FUNCTION std::uint64_t bits_of(double value) { return __builtin_bit_cast(std::uint64_t, value); }
WAVEJIT_LANE_FUNCTION float float_of(std::uint32_t bits) { return __builtin_bit_cast(float, bits); }
WAVEJIT_LANE_FUNCTION double double_of(std::uint64_t bits) { return __builtin_bit_cast(double, bits); }

// What an invalid operation gives: the CDNA3 ISA's examples (v_log_f32(-1), v_sqrt_f32(-inf), 0/0 in v_div_fixup) all
// show the negative quiet NaN.
static constexpr std::uint32_t default_nan_f32 = 0xffc00000u;
static constexpr std::uint64_t default_nan_f64 = 0xfff8000000000000u;
static constexpr std::uint16_t default_nan_f16 = 0xfe00u;

WAVEJIT_LANE_FUNCTION bool is_nan(float value) { return (bits_of(value) & 0x7fffffffu) > 0x7f800000u; }
WAVEJIT_LANE_FUNCTION bool is_nan(double value) { return (bits_of(value) & 0x7fffffffffffffffu) > 0x7ff0000000000000u; }
WAVEJIT_LANE_FUNCTION bool is_nan_f16(std::uint32_t half) { return (half & 0x7fffu) > 0x7c00u; }
WAVEJIT_LANE_FUNCTION bool is_signalling(float value) { return is_nan(value) && (bits_of(value) & 0x00400000u) == 0; }
WAVEJIT_LANE_FUNCTION bool is_signalling(double value) {
  return is_nan(value) && (bits_of(value) & 0x0008000000000000u) == 0;
}
WAVEJIT_LANE_FUNCTION bool is_signalling_f16(std::uint32_t half) { return is_nan_f16(half) && (half & 0x0200u) == 0; }
WAVEJIT_LANE_FUNCTION float quiet(float value) { return float_of(bits_of(value) | 0x00400000u); }
WAVEJIT_LANE_FUNCTION double quiet(double value) { return double_of(bits_of(value) | 0x0008000000000000u); }

WAVEJIT_LANE_FUNCTION float default_nan(float /*type*/) { return float_of(default_nan_f32); }
WAVEJIT_LANE_FUNCTION double default_nan(double /*type*/) { return double_of(default_nan_f64); }

WAVEJIT_LANE_FUNCTION float magnitude(float value) { return float_of(bits_of(value) & 0x7fffffffu); }
WAVEJIT_LANE_FUNCTION double magnitude(double value) { return double_of(bits_of(value) & 0x7fffffffffffffffu); }
WAVEJIT_LANE_FUNCTION float negated(float value) { return float_of(bits_of(value) ^ 0x80000000u); }
WAVEJIT_LANE_FUNCTION double negated(double value) { return double_of(bits_of(value) ^ 0x8000000000000000u); }
WAVEJIT_LANE_FUNCTION bool is_negative(float value) { return (bits_of(value) >> 31) != 0; }
WAVEJIT_LANE_FUNCTION bool is_negative(double value) { return (bits_of(value) >> 63) != 0; }
WAVEJIT_LANE_FUNCTION int exponent_field(float value) { return static_cast<int>((bits_of(value) >> 23) & 0xff); }
WAVEJIT_LANE_FUNCTION int exponent_field(double value) { return static_cast<int>((bits_of(value) >> 52) & 0x7ff); }

// Denormals become a zero of the same sign.
WAVEJIT_LANE_FUNCTION float flushed(float value) {
  return (bits_of(value) & 0x7f800000u) == 0 ? float_of(bits_of(value) & 0x80000000u) : value;
}
WAVEJIT_LANE_FUNCTION double flushed(double value) {
  return (bits_of(value) & 0x7ff0000000000000u) == 0 ? double_of(bits_of(value) & 0x8000000000000000u) : value;
}
WAVEJIT_LANE_FUNCTION std::uint32_t flushed_f16(std::uint32_t half) {
  return (half & 0x7c00u) == 0 ? half & 0x8000u : half;
}

// Which NaN an arithmetic result carries. Host instructions let operand order decide, and the compiler may swap the
// operands; so the choice is made here: the first operand that is NaN, quieted, else the default NaN.
template <typename Float>
WAVEJIT_LANE_FUNCTION Float with_nan_of(Float result, Float a, Float b) {
  const Float other = is_nan(b) ? quiet(b) : (is_nan(result) ? default_nan(result) : result);
  return is_nan(a) ? quiet(a) : other;
}
template <typename Float>
WAVEJIT_LANE_FUNCTION Float with_nan_of(Float result, Float a, Float b, Float c) {
  const Float last = is_nan(c) ? quiet(c) : (is_nan(result) ? default_nan(result) : result);
  const Float other = is_nan(b) ? quiet(b) : last;
  return is_nan(a) ? quiet(a) : other;
}

WAVEJIT_LANE_FUNCTION float fused(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
WAVEJIT_LANE_FUNCTION double fused(double a, double b, double c) { return __builtin_fma(a, b, c); }

}  // namespace wavejit::simgpu::numerics
