// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Numbers that batches are drawn from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace wavejit::tools {

// splitmix64: the same numbers on every machine.
class Draws {
 public:
  explicit Draws(std::uint64_t seed) : state_(seed) {}
  // The draws of one batch of a seed.
  Draws(std::uint64_t seed, std::uint64_t batch) : state_((seed * 0x2545F4914F6CDD1D) ^ (batch * 0xD6E8FEB86659FD93)) {}

  std::uint64_t next() {
    state_ += 0x9E3779B97F4A7C15;
    std::uint64_t x = state_;
    x = (x ^ (x >> 30U)) * 0xBF58476D1CE4E5B9;
    x = (x ^ (x >> 27U)) * 0x94D049BB133111EB;
    return x ^ (x >> 31U);
  }
  // From 0 to below `count`.
  std::int64_t below(std::int64_t count) {
    return static_cast<std::int64_t>(next() % static_cast<std::uint64_t>(count));
  }
  bool one_in(std::int64_t count) { return below(count) == 0; }

  template <typename Element>
  void shuffle(std::vector<Element>& values) {
    for (std::size_t i = values.size(); i > 1; --i)
      std::swap(values[i - 1], values[static_cast<std::size_t>(below(static_cast<std::int64_t>(i)))]);
  }

 private:
  std::uint64_t state_;
};

}  // namespace wavejit::tools
