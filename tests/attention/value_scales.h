// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// K and V of 8 bits, and Q and K in int8, under the scales that rows name.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/attention_run.h"
#include "templates/attention/kernel/modifiers.h"
#include "wavejit/wavejit.h"

namespace wavejit::tests {

// What a row says of the numbers of its scales, `numbers=`.
class ScaleNumbers {
 public:
  // Integers reach as far as floats of 8 bits do.
  ScaleNumbers(const std::string& said, bool integers)
      : any_(said == "any" || said == "either_sign"),
        thirds_are_negative_(said == "either_sign"),
        all_are_negative_(said == "negative"),
        step_(integers ? 1.0F / 32 : 1.0F) {
    if (!said.empty() && !any_ && !all_are_negative_) throw std::runtime_error("no numbers are called '" + said + "'");
  }

  // By the place in the tensor. Any numbers have few bits, so that an element times its scale is a number of f32.
  float of_k(int place) const {
    constexpr std::array any = {0.8125F, 1.375F, 0.6875F, 1.125F};
    return step_ * sign(place) * (any_ ? any[place % any.size()] : power_of_k(place));
  }
  float of_v(int place) const {
    constexpr std::array any = {37.5F, 0.0078125F, 1.0F, 0.9375F};
    return step_ * (any_ ? any[place % any.size()] : power_of_v(place));
  }
  // Those of tokens take many values, and none is far from the next.
  float of_k_token(int number) const {
    return step_ * sign(number) * (any_ ? 0.5F + (0.0625F * static_cast<float>(number % 16)) : power_of_k(number));
  }
  float of_v_token(int number) const {
    return step_ * (any_ ? 1.5F - (0.0625F * static_cast<float>(number % 15)) : power_of_v(number));
  }

 private:
  float sign(int number) const { return all_are_negative_ || (thirds_are_negative_ && number % 3 == 0) ? -1.0F : 1.0F; }
  // What floats of 8 bits are multiplied with here is a number of bf16 and of fp16.
  static float power_of_k(int number) { return std::exp2(static_cast<float>(number % 3) - 1); }
  static float power_of_v(int number) { return std::exp2(1 - static_cast<float>(number % 4)); }

  bool any_;
  bool thirds_are_negative_;
  bool all_are_negative_;
  float step_;
};

// `extent`: which dimensions the scales have of their own.
inline StoredBytes bytes_of(const AttentionInputs& in, wavejit_dtype type, attention::Extent extent,
                            const std::string& numbers = "") {
  StoredBytes bytes{.type = type};
  const ScaleNumbers made(numbers, type == WAVEJIT_INT8);
  if (extent == attention::Extent::none) return bytes;
  if (extent == attention::Extent::token_and_head) {
    bytes.tokens = true;
    // Rows of padding have none: NaN.
    const std::size_t rows = std::size_t(in.key_batches()) * in.key_rows();
    bytes.k_scale.assign(rows * in.kv_heads, std::numeric_limits<float>::quiet_NaN());
    bytes.v_scale = bytes.k_scale;
    for (int b = 0; b < in.batch; ++b)
      for (int j = 0; j < in.keys(b); ++j)
        for (int h = 0; h < in.kv_heads; ++h) {
          const std::size_t at = (std::size_t(in.first_key(b) + j) * in.kv_heads) + h;
          const int number = (5 * j) + (3 * h) + b;
          bytes.k_scale[at] = made.of_k_token(number);
          bytes.v_scale[at] = made.of_v_token(number);
        }
    return bytes;
  }
  const bool all = extent == attention::Extent::batch_and_head;
  bytes.batches = all || extent == attention::Extent::batch ? in.batch : 1;
  bytes.heads = all || extent == attention::Extent::head ? in.kv_heads : 1;
  for (int place = 0; place < bytes.batches * bytes.heads; ++place) {
    bytes.k_scale.push_back(made.of_k(place));
    bytes.v_scale.push_back(made.of_v(place));
  }
  return bytes;
}

// Whether K and V are numbers of 16 bits, too.
inline bool has_powers_of_two(const StoredBytes& bytes) {
  const auto is_power = [](float scale) {
    int exponent = 0;
    return std::isnan(scale) || std::fabs(std::frexp(scale, &exponent)) == 0.5F;
  };
  return std::ranges::all_of(bytes.k_scale, is_power) && std::ranges::all_of(bytes.v_scale, is_power);
}

// Numbers of Q's or K's scales in int8: `said` tensor, heads or tokens, none if empty. Few bits, so that an integer times
// its scale is a number of f32.
inline RowScales row_scales(const std::string& said, int batches, int tokens, int heads, bool either_sign = false) {
  if (said.empty()) return {};
  RowScales made;
  if (said == "tokens") {
    made.batches = batches;
    made.tokens = tokens;
    made.heads = heads;
  } else if (said == "heads") {
    made.heads = heads;
  } else if (said != "tensor") {
    throw std::runtime_error("no scales are called '" + said + "'");
  }
  for (int place = 0; place < made.batches * made.tokens * made.heads; ++place) {
    const float sign = either_sign && place % 2 == 0 ? -1.0F : 1.0F;
    made.numbers.push_back(sign * (1 + (0.125F * static_cast<float>(place % 7))) / 32);
  }
  return made;
}

}  // namespace wavejit::tests
