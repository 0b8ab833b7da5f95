// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Registers of a wave, by ranges and as sets of them.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "simgpu/machine/instruction/instruction.h"

namespace wavejit::simgpu::checks {

struct Registers {
  std::uint16_t first = 0;
  std::uint8_t count = 0;
  bool scalar = false;
};

// Any of a wave's registers: vector ones first, scalar ones behind them.
class RegisterSet {
 public:
  void clear() { words_.fill(0); }
  void fill() { words_.fill(~std::uint64_t{0}); }
  // Whether the two have a register in common.
  bool meets(const RegisterSet& other) const {
    std::uint64_t found = 0;
    for (unsigned i = 0; i < word_count; ++i) found |= words_[i] & other.words_[i];
    return found != 0;
  }
  bool any(const Registers& range) const {
    std::uint64_t found = 0;
    in_words(range, [&](unsigned word, std::uint64_t mask) { found |= words_[word] & mask; });
    return found != 0;
  }
  bool has_vector(unsigned index) const { return has(index); }
  bool has_scalar(unsigned index) const { return has(vector_count + index); }
  void insert(const Registers& range) {
    in_words(range, [&](unsigned word, std::uint64_t mask) { words_[word] |= mask; });
  }
  void erase(const Registers& range) {
    in_words(range, [&](unsigned word, std::uint64_t mask) { words_[word] &= ~mask; });
  }
  void insert_vector(unsigned index) {
    insert({.first = static_cast<std::uint16_t>(index), .count = 1, .scalar = false});
  }
  void insert_scalar(unsigned index) {
    insert({.first = static_cast<std::uint16_t>(index), .count = 1, .scalar = true});
  }
  void erase_vector(unsigned index) {
    erase({.first = static_cast<std::uint16_t>(index), .count = 1, .scalar = false});
  }
  void erase_scalar(unsigned index) { erase({.first = static_cast<std::uint16_t>(index), .count = 1, .scalar = true}); }

 private:
  static constexpr unsigned vector_count = 2 * accumulation_base;
  static constexpr unsigned size = vector_count + sgpr_count;
  static constexpr unsigned word_count = size / 64;

  bool has(unsigned place) const { return ((words_[place / 64] >> (place % 64)) & 1) != 0; }
  // The words that hold the range, each with the bits that are of it.
  template <typename Body>
  static void in_words(const Registers& range, Body&& body) {
    const unsigned of_kind = range.scalar ? sgpr_count : vector_count;
    unsigned place = range.first + (range.scalar ? vector_count : 0);
    unsigned left = range.first < of_kind ? std::min<unsigned>(range.count, of_kind - range.first) : 0;
    while (left != 0) {
      const unsigned bit = place % 64;
      const unsigned count = std::min(left, 64 - bit);
      body(place / 64, (~std::uint64_t{0} >> (64 - count)) << bit);
      place += count;
      left -= count;
    }
  }
  std::array<std::uint64_t, word_count> words_{};
};

}  // namespace wavejit::simgpu::checks
