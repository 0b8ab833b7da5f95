#pragma once
// A set of registers, tested and changed by ranges.

#include <array>
#include <cstdint>

#include "simgpu/checks/effects.h"

namespace wavejit::simgpu::checks {

template <unsigned size>
class RegisterSet {
 public:
  void clear() { words_.fill(0); }
  void fill() { words_.fill(~uint64_t{0}); }
  [[nodiscard]] bool any(unsigned first, unsigned count) const {
    const unsigned word = first / 64;
    const unsigned shift = first % 64;
    const uint64_t mask = ones(count);
    uint64_t found = words_[word] & (mask << shift);
    if (shift + count > 64 && word + 1 < words_.size()) found |= words_[word + 1] & (mask >> (64 - shift));
    return found != 0;
  }
  [[nodiscard]] bool has(unsigned index) const { return ((words_[index / 64] >> (index % 64)) & 1) != 0; }
  void insert(unsigned index) { words_[index / 64] |= uint64_t{1} << (index % 64); }
  void erase(unsigned index) { words_[index / 64] &= ~(uint64_t{1} << (index % 64)); }
  void insert(unsigned first, unsigned count) {
    for (unsigned i = first; i < first + count && i < size; ++i) insert(i);
  }
  void erase(unsigned first, unsigned count) {
    for (unsigned i = first; i < first + count && i < size; ++i) erase(i);
  }
  [[nodiscard]] bool empty() const {
    uint64_t all = 0;
    for (const uint64_t word : words_) all |= word;
    return all == 0;
  }

 private:
  static constexpr uint64_t ones(unsigned count) { return count >= 64 ? ~uint64_t{0} : (uint64_t{1} << count) - 1; }
  std::array<uint64_t, (size + 63) / 64> words_{};
};

using VectorSet = RegisterSet<512>;
using ScalarSet = RegisterSet<128>;

}  // namespace wavejit::simgpu::checks
