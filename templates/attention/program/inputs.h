// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Input values as a function of seed, tensor, row and column: any row can be made at any time, on any thread, so
// neither the reference nor a case of many gigabytes needs a copy of the arrays on the host.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "templates/attention/program/vocabulary.h"
#include "tools/byte_float.h"
#include "tools/half.h"

namespace wavejit::attention::program {

enum class Operand : std::uint8_t { q = 1, k = 2, v = 3, bias = 4 };

class Inputs {
 public:
  static bool known(const std::string& distribution);
  static std::string accepted();
  // Inputs of a known distribution.
  Inputs(HalfType type, const std::string& distribution, std::uint64_t seed);

  // K and V, and Q with them, stand in memory as 8 bits. From here on their numbers are those of the nearest bytes,
  // times what `scale` says of a row.
  using RowScale = std::function<float(Operand operand, std::int64_t row)>;
  void keep_in_bytes(tools::ByteType type, RowScale scale, bool queries = false);
  // Q and K stand as integers of 8 bits: from here on their numbers are those of the nearest ones, times what `scale`
  // says of a row. `step`: what one integer stands for of what was drawn; 0: the same.
  void keep_in_integers(float step, RowScale scale);
  // The bytes of what is kept as bytes.
  void fill(Operand operand, std::int64_t row, std::int64_t position, std::span<std::uint8_t> bytes) const;

  // Row `row` (token · heads + head) of a tensor; `position` is the token's number in its sequence.
  void fill(Operand operand, std::int64_t row, std::int64_t position, std::span<std::uint16_t> elements) const;
  // The same as numbers.
  void fill(Operand operand, std::int64_t row, std::int64_t position, std::span<float> elements) const;
  // An element of a row of the bias.
  float bias(std::int64_t row, std::int64_t column) const;
  // ALiBi: the usual 2^(−8 (head + 1) / heads), a little apart for every batch, so that two mixed up would show.
  float slope(std::int64_t batch, std::int64_t head, std::int64_t heads) const;

 private:
  enum class Pattern : std::uint8_t { random, one_hot, ascending, mixed_rescale, constant };

  static std::optional<Pattern> pattern_of(const std::string& distribution);
  float integer(float value, float scale) const;
  float patterned(Operand operand, std::int64_t position, std::size_t column) const;

  HalfType type_;
  Pattern pattern_;
  std::uint64_t seed_;
  const std::vector<std::uint16_t>& table_;  // 2^16 values of the distribution, equally likely
  const std::vector<float>& decoded_;        // of every bit pattern of the type
  // For 8 bits, else empty: of every bit pattern of the type the nearest byte, and of every byte its value.
  std::vector<std::uint8_t> nearest_;
  std::vector<float> values_;
  RowScale scale_;
  bool queries_in_bytes_ = false;
  bool in_integers_ = false;  // Q and K
  float step_ = 0;
};

}  // namespace wavejit::attention::program
