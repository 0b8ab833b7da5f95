// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// 16-bit storage types for tests: conversions written once, plainly, with the compiler's own _Float16 and bit
// arithmetic, sharing nothing with the simulated GPU or the kernels.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace wavejit::tests {

enum class Storage : std::uint8_t { fp16, bf16 };

// Round to nearest, ties to even.
inline std::uint16_t to_storage(Storage storage, double value) {
  if (storage == Storage::fp16) return std::bit_cast<std::uint16_t>(static_cast<_Float16>(value));
  // double → f32 → bf16 rounds twice; the inputs of these tests are f32 values, for which the first step is exact.
  const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(value));
  if (std::isnan(value)) return static_cast<std::uint16_t>((bits >> 16) | 0x40U);
  return static_cast<std::uint16_t>((bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16);
}

inline float from_storage(Storage storage, std::uint16_t bits) {
  if (storage == Storage::fp16) return static_cast<float>(std::bit_cast<_Float16>(bits));
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

// Half a unit in the last place of the storage type at |value|.
inline double half_ulp(Storage storage, double value) {
  const int significand_bits = storage == Storage::fp16 ? 11 : 8;
  const int smallest_exponent = storage == Storage::fp16 ? -14 : -126;
  if (value == 0 || !std::isfinite(value)) return 0;
  const int exponent = std::max(std::ilogb(std::fabs(value)), smallest_exponent);
  return std::ldexp(1.0, exponent - significand_bits);
}

}  // namespace wavejit::tests
