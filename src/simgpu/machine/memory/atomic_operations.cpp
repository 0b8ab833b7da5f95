// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/machine/memory/atomic_operations.h"

namespace wavejit::simgpu::atomics {
namespace {

float half_to_float(std::uint16_t half) { return static_cast<float>(std::bit_cast<_Float16>(half)); }

// A float32 sum of two float16 is exact enough that rounding it once more gives the correctly rounded sum (24 ≥ 2·11 +
// 2 bits).
std::uint16_t add_half(std::uint16_t a, std::uint16_t b) {
  return std::bit_cast<std::uint16_t>(static_cast<_Float16>(half_to_float(a) + half_to_float(b)));
}

std::uint16_t round_to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if (std::isnan(value)) return static_cast<std::uint16_t>((bits >> 16) | 0x40);
  return static_cast<std::uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

std::uint16_t add_bf16(std::uint16_t a, std::uint16_t b) {
  return round_to_bf16(std::bit_cast<float>(std::uint32_t{a} << 16) + std::bit_cast<float>(std::uint32_t{b} << 16));
}

template <std::uint16_t (*function)(std::uint16_t, std::uint16_t)>
std::uint32_t each_half(std::uint32_t old, std::uint32_t data) {
  const std::uint16_t low = function(static_cast<std::uint16_t>(old), static_cast<std::uint16_t>(data));
  const std::uint16_t high = function(static_cast<std::uint16_t>(old >> 16), static_cast<std::uint16_t>(data >> 16));
  return low | (std::uint32_t{high} << 16);
}

}  // namespace

std::uint32_t add_packed_f16(std::uint32_t old, std::uint32_t data) { return each_half<add_half>(old, data); }
std::uint32_t add_packed_bf16(std::uint32_t old, std::uint32_t data) { return each_half<add_bf16>(old, data); }

}  // namespace wavejit::simgpu::atomics
