// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What registers, LDS and private memory hold before anything is written: bits that look random, the same for the same
// seed on every host and with any number of threads.
#pragma once

#include <cstddef>
#include <cstdint>

namespace wavejit::simgpu {

// Mixes well enough that neighbours share nothing (the finaliser of MurmurHash3, public domain).
constexpr std::uint64_t mix(std::uint64_t value) {
  value ^= value >> 33;
  value *= 0xff51afd7ed558ccd;
  value ^= value >> 33;
  value *= 0xc4ceb9fe1a85ec53;
  value ^= value >> 33;
  return value;
}

void fill_noise(std::uint32_t* words, std::size_t count, std::uint64_t seed);

// A small generator for schedules.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(mix(seed)) {}
  std::uint32_t below(std::uint32_t limit) {
    state_ = mix(state_ + 0x9e3779b97f4a7c15);
    return static_cast<std::uint32_t>(((state_ >> 32) * limit) >> 32);
  }

 private:
  std::uint64_t state_;
};

}  // namespace wavejit::simgpu
