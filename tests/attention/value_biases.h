// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Biases that rows name: numbers of which kernels may make something that they are not.
#pragma once

#include <cstddef>
#include <limits>
#include <stdexcept>
#include <string>

#include "support/attention_reference.h"

namespace wavejit::tests {

// Writes over some or all numbers of a normal bias.
inline void change_bias(AttentionInputs& in, const std::string& name) {
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
  } else {
    throw std::runtime_error("no bias is called '" + name + "'");
  }
}

}  // namespace wavejit::tests
