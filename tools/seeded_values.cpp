// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// In a file of its own: all inputs are drawn here, and development builds optimise it (CMakeLists.txt).
#include <cstddef>
#include <cstdint>
#include <vector>

#include "tools/array_problem.h"

namespace wavejit::tools {

std::vector<float> seeded_values(std::uint64_t seed, std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    // splitmix64: a bijection that leaves no bit where it was.
    std::uint64_t x = seed * 0x2545F4914F6CDD1D + (i + 1) * 0x9E3779B97F4A7C15;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
    x ^= x >> 31;
    // 23 bits and a half one: exact in a float, and never an end of the range.
    constexpr float half_range = 1 << 22;
    values[i] = (static_cast<float>(x >> 41) + 0.5F) / half_range - 1;
  }
  return values;
}

}  // namespace wavejit::tools
