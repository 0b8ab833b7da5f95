// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/machine/numerics/noise.h"

namespace wavejit::simgpu {
namespace {

[[gnu::always_inline]] inline void fill(std::uint32_t* words, std::size_t count, std::uint32_t start) {
  for (std::size_t i = 0; i < count; ++i) {
    std::uint32_t value = start + (static_cast<std::uint32_t>(i) * 0x9e3779b9u);
    value ^= value >> 16;
    value *= 0x85ebca6bu;
    value ^= value >> 13;
    value *= 0xc2b2ae35u;
    value ^= value >> 16;
    words[i] = value;
  }
}

// Every wave starts with 64 KiB or more of it, and 32-bit products are slow without these.
[[gnu::target("avx2")]] void fill_wide(std::uint32_t* words, std::size_t count, std::uint32_t start) {
  fill(words, count, start);
}

}  // namespace

void fill_noise(std::uint32_t* words, std::size_t count, std::uint64_t seed) {
  const auto start = static_cast<std::uint32_t>(mix(seed));
  static const bool wide = __builtin_cpu_supports("avx2") != 0;
  wide ? fill_wide(words, count, start) : fill(words, count, start);
}

}  // namespace wavejit::simgpu
