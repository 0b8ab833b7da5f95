// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the `invariance` of families of attention shares: pieces of sequences, what their rows got, where two answers
// part.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "tools/half.h"
#include "tools/invariance/draws.h"
#include "tools/invariance/invariance.h"

namespace wavejit::attention::program {

// Rows begin … end − 1 of a sequence.
struct RowsOf {
  std::size_t sequence = 0;
  std::int64_t begin = 0;
  std::int64_t end = 0;

  std::int64_t rows() const { return end - begin; }
};

// Everything that rows of a sequence got: O [rows][query heads][dim] and LSE [rows][query heads], as bits.
struct RowAnswer {
  std::vector<std::uint16_t> o;
  std::vector<std::uint32_t> lse;
};
// The shape of an answer.
struct AnswerShape {
  tools::HalfType type = tools::HalfType::fp16;
  std::int64_t heads = 1;
  std::int64_t dim = 64;  // of O
};

// Cuts packed O [row][head][dim] and LSE [head][row] into an answer for each piece, whose rows begin at `starts`.
std::vector<RowAnswer> by_piece(const AnswerShape& shape, std::span<const std::int32_t> starts,
                                const std::vector<std::uint16_t>& o, const std::vector<std::uint32_t>& lse);

// Pieces of a sequence stand in its order, side by side or not.
RowAnswer joined(std::span<const RowsOf> pieces, std::span<const RowAnswer> answers, std::size_t sequence);

// Without the last rows.
RowAnswer cut(const AnswerShape& shape, RowAnswer answer, std::int64_t rows);

std::optional<tools::FirstDifference> first_difference(const AnswerShape& shape, const RowAnswer& before,
                                                       const RowAnswer& after);

// From 2^−3 to below 4, of either sign, by exponents: scores then spread enough for maxima that grow.
std::vector<std::uint16_t> drawn_halves(tools::HalfType type, tools::Draws& draws, std::int64_t count);
std::vector<float> drawn_numbers(tools::Draws& draws, std::int64_t count, float scale);

// What stands where no row may look. NaN is the same in both types.
enum class Garbage : std::uint8_t { nan, infinity, minus_infinity };
inline constexpr int garbage_count = 3;
const char* to_text(Garbage garbage);
std::uint16_t bits_of(Garbage garbage, tools::HalfType type);

}  // namespace wavejit::attention::program
