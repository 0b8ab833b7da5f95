// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One step of RDNA4's products of 16-bit floats: several products are added to C and the sum is rounded once, as
// captured on an R9700 (docs/isa.md, "RDNA4"; tests/simgpu/semantics/rdna4_captures.txt).
//
//  * Products are exact. A subnormal factor has the smallest normal exponent; a product's exponent is the sum of its
//    factors', not normalised; one with a zero factor has none.
//  * Each pair is cut to a multiple of 2^(its larger exponent - 24), downwards, and added.
//  * Pair sums and C are cut to multiples of 2^g, downwards: g is the largest product exponent - 24, or C's exponent -
//  26
//    (at least -126 - 26). A negative C of which nothing is left counts 0 where g > -126, else one unit.
//  * The sum is rounded to nearest even; zero is +0.
#pragma once

#include <cstdint>

#include "simgpu/machine/numerics/bits.h"

namespace wavejit::simgpu::numerics {

// A factor: significand with its sign, `fraction` bits behind the point.
struct Factor {
  std::int32_t significand;
  std::int32_t exponent;
  bool is_nan;
  bool is_infinite;
};

static constexpr std::int32_t no_exponent = -4096;  // of zero

// A float of this many exponent and fraction bits, which has infinities and NaN.
template <unsigned ExponentBits, unsigned FractionBits>
WAVEJIT_LANE_FUNCTION Factor factor_of(std::uint32_t bits) {
  constexpr std::int32_t bias = (1 << (ExponentBits - 1)) - 1;
  constexpr std::uint32_t top = (1u << ExponentBits) - 1;
  const std::uint32_t field = (bits >> FractionBits) & top;
  const std::uint32_t fraction = bits & ((1u << FractionBits) - 1);
  const bool negative = ((bits >> (ExponentBits + FractionBits)) & 1) != 0;
  const auto magnitude = static_cast<std::int32_t>(fraction | (field != 0 ? 1u << FractionBits : 0u));
  Factor factor;
  factor.significand = negative ? -magnitude : magnitude;
  factor.exponent = magnitude == 0 ? no_exponent : (field == 0 ? 1 : static_cast<std::int32_t>(field)) - bias;
  factor.is_nan = field == top && fraction != 0;
  factor.is_infinite = field == top && fraction == 0;
  return factor;
}
WAVEJIT_LANE_FUNCTION Factor factor_of_f16(std::uint32_t bits) { return factor_of<5, 10>(bits & 0xffffu); }
WAVEJIT_LANE_FUNCTION Factor factor_of_bf16(std::uint32_t bits) { return factor_of<8, 7>(bits & 0xffffu); }
// OCP: bf8 (E5M2) as above; fp8 (E4M3) has no infinities and one NaN of each sign.
WAVEJIT_LANE_FUNCTION Factor factor_of_bf8(std::uint32_t bits) { return factor_of<5, 2>(bits & 0xffu); }
WAVEJIT_LANE_FUNCTION Factor factor_of_fp8(std::uint32_t bits) {
  Factor factor = factor_of<4, 3>(bits & 0xffu);
  factor.is_nan = (bits & 0x7fu) == 0x7fu;
  factor.is_infinite = false;
  return factor;
}

static constexpr std::int32_t product_bits = 24;  // kept below the largest product exponent of a pair
static constexpr std::int32_t addend_bits = 26;   // kept below C's exponent

// Downwards; of more than all bits the sign is left.
WAVEJIT_LANE_FUNCTION std::int32_t cut(std::int32_t value, std::int32_t bits) {
  return value >> (bits > 31 ? 31 : bits);
}
WAVEJIT_LANE_FUNCTION std::int32_t larger(std::int32_t a, std::int32_t b) { return a > b ? a : b; }

struct Product {
  std::int32_t value;  // in units of 2^(exponent - 24)
  std::int32_t exponent;
};
template <unsigned FractionBits>
WAVEJIT_LANE_FUNCTION Product product_of(std::int32_t a, std::int32_t a_exponent, std::int32_t b,
                                         std::int32_t b_exponent) {
  return {(a * b) * (1 << (product_bits - 2 * static_cast<std::int32_t>(FractionBits))), a_exponent + b_exponent};
}
WAVEJIT_LANE_FUNCTION Product pair_of(Product a, Product b) {
  const std::int32_t exponent = larger(a.exponent, b.exponent);
  return {cut(a.value, exponent - a.exponent) + cut(b.value, exponent - b.exponent), exponent};
}

// C, finite, with one or two pairs. The sum in units of 2^`grid`.
struct StepSum {
  std::int32_t value;
  std::int32_t grid;
};
WAVEJIT_LANE_FUNCTION StepSum sum_of(std::uint32_t c, Product first, Product second) {
  const auto field = static_cast<std::int32_t>((c >> 23) & 0xff);
  const auto magnitude = static_cast<std::int32_t>((c & 0x7fffffu) | (field != 0 ? 0x800000u : 0u));
  const std::int32_t exponent = (field == 0 ? 1 : field) - 127;
  const bool negative = (c >> 31) != 0;
  const std::int32_t largest = larger(first.exponent, second.exponent);
  const std::int32_t grid = larger(largest - product_bits, exponent - addend_bits);
  const std::int32_t down = grid - (exponent - 23);
  const std::int32_t up = down < 0 ? -down : 0;
  const std::int32_t right = down < 0 ? 0 : down;
  const std::int32_t kept = cut(magnitude, right);
  const std::int32_t floored = cut(negative ? -magnitude : magnitude, right);
  const std::int32_t below = kept == 0 && grid > -126 ? 0 : floored;
  const std::int32_t addend = below * (1 << up);
  const std::int32_t one = cut(first.value, grid - (first.exponent - product_bits));
  const std::int32_t other = cut(second.value, grid - (second.exponent - product_bits));
  return {addend + one + other, grid};
}

// 2^power for normal results of float64.
WAVEJIT_LANE_FUNCTION double scaled_grid(std::int32_t power) {
  return double_of(static_cast<std::uint64_t>(power + 1023) << 52);
}
WAVEJIT_LANE_FUNCTION std::uint32_t rounded(StepSum sum) {
  // Exact in float64, so that the one rounding is the one to float32.
  const auto value = static_cast<float>(static_cast<double>(sum.value) * scaled_grid(sum.grid));
  return sum.value == 0 ? 0u : bits_of(value);
}

// A whole step of `count` products, two or four, whatever they are.
template <unsigned FractionBits, unsigned Count>
WAVEJIT_LANE_FUNCTION std::uint32_t dot_step(const Factor (&a)[Count], const Factor (&b)[Count], std::uint32_t c) {
  constexpr std::uint32_t nan_of_factors = 0xffc00a3du;
  constexpr std::uint32_t infinity = 0x7f800000u;
  bool nan = false;
  bool invalid = false;
  bool positive = false;
  bool negative = false;
  for (unsigned i = 0; i < Count; ++i) {
    nan = nan || a[i].is_nan || b[i].is_nan;
    if (!a[i].is_infinite && !b[i].is_infinite) continue;
    if (a[i].significand == 0 || b[i].significand == 0) invalid = true;
    const bool sign = (a[i].significand < 0) != (b[i].significand < 0);
    (sign ? negative : positive) = true;
  }
  if (nan) return nan_of_factors;
  if (invalid || (positive && negative)) return default_nan_f32;
  if ((c & 0x7fffffffu) > infinity) return c | 0x00400000u;
  if ((c & 0x7fffffffu) == infinity) ((c >> 31) != 0 ? negative : positive) = true;
  if (positive && negative) return default_nan_f32;
  if (positive || negative) return negative ? infinity | 0x80000000u : infinity;
  Product pairs[2] = {{0, no_exponent}, {0, no_exponent}};
  for (unsigned i = 0; i < Count / 2; ++i) {
    Product products[2];
    for (unsigned j = 0; j < 2; ++j) {
      const Factor& x = a[2 * i + j];
      const Factor& y = b[2 * i + j];
      products[j] = product_of<FractionBits>(x.significand, x.exponent, y.significand, y.exponent);
    }
    pairs[i] = pair_of(products[0], products[1]);
  }
  return rounded(sum_of(c, pairs[0], pairs[1]));
}

}  // namespace wavejit::simgpu::numerics
