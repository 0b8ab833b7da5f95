// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

namespace wavejit::tests {

// Floats as integers: NaN is a result like any other, and −0 is not +0.
inline std::vector<std::uint32_t> bits_of(const std::vector<float>& values) {
  std::vector<std::uint32_t> bits(values.size());
  std::ranges::transform(values, bits.begin(), [](float x) { return std::bit_cast<std::uint32_t>(x); });
  return bits;
}

}  // namespace wavejit::tests
