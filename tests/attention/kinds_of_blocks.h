// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which kind each block of a generated mask is. A block's generator is seeded once, not for each of its elements:
// seeding draws 312 numbers.
#pragma once

#include <cstdint>
#include <random>
#include <unordered_map>

namespace wavejit::tests {

class KindsOfBlocks {
 public:
  explicit KindsOfBlocks(std::uint64_t kinds) : kinds_(kinds) {}

  // 0 … kinds − 1, the same for the same seed.
  std::uint64_t of(std::uint64_t seed) {
    const auto [place, is_new] = known_.try_emplace(seed, 0);
    if (is_new) {
      std::mt19937_64 random(seed);
      random.discard(3);
      place->second = random() % kinds_;
    }
    return place->second;
  }

 private:
  std::uint64_t kinds_;
  std::unordered_map<std::uint64_t, std::uint64_t> known_;
};

}  // namespace wavejit::tests
