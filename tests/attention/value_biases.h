// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Biases that rows name: numbers of which kernels may make something that they are not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>

#include "attention/kinds_of_blocks.h"
#include "support/attention_run.h"

namespace wavejit::tests {

// Writes over some or all numbers of a normal bias.
inline void change_bias(AttentionCase& which, const std::string& name, std::uint64_t seed) {
  AttentionInputs& in = which.inputs;
  constexpr float infinity = std::numeric_limits<float>::infinity();
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  const auto change = [&](auto to) {
    const int rows = in.query_rows();
    for (std::size_t at = 0; at < in.bias.size(); ++at) {
      const int key = static_cast<int>(at % in.key_length);
      const int row = static_cast<int>(at / in.key_length % rows);
      to(row, key, in.bias[at], static_cast<int>(at / in.key_length / rows));
    }
  };
  if (name == "nan_where_hidden") {
    // Elements of keys behind the diagonal never matter.
    change([&](int row, int key, float& bias, int) {
      if (key > row + in.key_length - in.query_length) bias = nan;
    });
  } else if (name == "minus_infinity") {
    // −∞ hides a key, a row of them everything.
    change([](int row, int key, float& bias, int) {
      if (row == 7 || (row + key) % 3 == 0 || key < 64) bias = -infinity;
    });
  } else if (name == "jumps") {
    // Some rows of a wave are rescaled, others not, over many tiles.
    change([](int row, int key, float& bias, int) {
      if (row % 3 == 0) bias = static_cast<float>(10 * (key >> 6));
    });
  } else if (name == "fine") {
    // Neighbouring keys are a tenth apart, and numbers of 16 bits a quarter (fp16) or two (bf16).
    change([](int, int key, float& bias, int head) {
      bias = 300 + (0.1F * static_cast<float>(key)) - static_cast<float>(head);
    });
  } else if (name == "tiles") {
    // A quarter of the blocks of rows and tiles of keys is hidden, a quarter 0 (of either sign), a quarter has both,
    // the rest any numbers beside them; the last rows see nothing. In fp32 numbers are none of 16 bits.
    KindsOfBlocks kinds(4);
    const int rows = in.query_rows();
    change([&](int row, int key, float& bias, int plane) {
      const std::uint64_t kind = kinds.of(seed + (1000003ULL * std::uint64_t(plane)) +
                                          (131ULL * std::uint64_t(row / 64)) + std::uint64_t(key / 64));
      const bool hides = ((row * 31) + (key * 17) + (row * key)) % 5 < 2;
      if (row >= rows - 2 || kind == 0 || (kind > 1 && hides)) {
        bias = -infinity;
      } else if (kind < 3) {
        bias = (row + key) % 3 == 0 ? -0.0F : 0.0F;
      } else if (which.bias_fp32) {
        bias *= 1 + 0x1p-14F;
      }
    });
  } else if (name == "zeros" || name == "zeros_but_one" || name == "hidden_but_one") {
    // The one stands at the last key, in any row.
    const auto of_row = static_cast<int>(seed % std::uint64_t(in.query_rows()));
    const bool hidden = name == "hidden_but_one";
    change([&](int row, int key, float& bias, int) {
      const bool is_one = name != "zeros" && row == of_row && key + 1 == in.key_length;
      bias = is_one ? (hidden ? 2.0F : -3.0F) : (hidden ? -infinity : 0.0F);
    });
  } else {
    throw std::runtime_error("no bias is called '" + name + "'");
  }
}

}  // namespace wavejit::tests
