// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the `invariance` of families of attention shares: pieces of sequences, what their rows got, where two answers
// part.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tools/call_memory.h"
#include "tools/half.h"
#include "tools/invariance/draws.h"
#include "tools/invariance/invariance.h"
#include "tools/stored_numbers.h"
#include "wavejit/simgpu.h"

namespace wavejit::attention::program {

// Rows begin … end − 1 of a sequence.
struct RowsOf {
  std::size_t sequence = 0;
  std::int64_t begin = 0;
  std::int64_t end = 0;

  std::int64_t rows() const { return end - begin; }
};

// A sequence that a batch has drawn, in the type's bits: q [rows][query heads][dim], k [keys][kv heads][dim].
struct DrawnRows {
  std::int64_t rows = 0;
  std::int64_t keys = 0;
  std::vector<std::uint16_t> q;
  std::vector<std::uint16_t> k;
};

// Sequences of a batch, whole: `rows` is a member that says how many rows one has.
template <typename Batch, typename Rows>
std::vector<RowsOf> whole_sequences(const Batch& batch, Rows rows) {
  std::vector<RowsOf> pieces;
  pieces.reserve(batch.sequences.size());
  for (std::size_t i = 0; i < batch.sequences.size(); ++i)
    pieces.push_back({.sequence = i, .begin = 0, .end = batch.sequences[i].*rows});
  return pieces;
}
// Keys that rows up to `end` of a sequence may see: with a diagonal those up to the last row's.
inline std::int64_t keys_up_to(std::int64_t end, std::int64_t rows, std::int64_t keys, bool causal) {
  return causal ? std::max<std::int64_t>(keys - rows + end, 0) : keys;
}

template <typename Batch>
std::int64_t keys_of(const Batch& batch, const RowsOf& piece) {
  const auto& of = batch.sequences[piece.sequence];
  return keys_up_to(piece.end, of.rows, of.keys, batch.causal);
}

// Queries of pieces, one behind the other, and what the call says of it.
struct PackedQueries {
  std::vector<std::uint16_t> q;
  std::vector<std::int32_t> starts = {0};
  std::int64_t longest = 0;

  std::int64_t rows() const { return starts.back(); }
  template <typename Call>
  void describe(Call& call, tools::CallMemory& memory) const {
    call.sequences.query_starts = memory.in(starts);
    call.sequences.count = std::ssize(starts) - 1;
    call.sequences.max_query_length = longest;
  }
};
// `width`: elements of a row.
template <typename Batch>
PackedQueries packed_queries(const Batch& batch, std::span<const RowsOf> pieces, std::int64_t width) {
  PackedQueries queries;
  for (const RowsOf& piece : pieces) {
    const auto from = batch.sequences[piece.sequence].q.begin();
    queries.q.insert(queries.q.end(), from + (piece.begin * width), from + (piece.end * width));
    queries.starts.push_back(queries.starts.back() + static_cast<std::int32_t>(piece.rows()));
    queries.longest = std::max(queries.longest, piece.rows());
  }
  return queries;
}

// Whole sequences in other pieces: in another order, in several drawn pieces each, a row at a time (of sequences of at
// most so many rows).
std::vector<RowsOf> shuffled(std::vector<RowsOf> whole, tools::Draws& draws);
std::vector<RowsOf> in_pieces(std::span<const RowsOf> whole, tools::Draws& draws);
std::vector<RowsOf> row_by_row(std::span<const RowsOf> whole, std::int64_t most_rows);

// An order of waves, by turns.
struct NamedSchedule {
  const char* text;
  wavejit_simgpu_schedule schedule;
};
const NamedSchedule& schedule_in_turn(std::uint64_t number);

// Runs that keys are cut into: 2 to 16, or 0 for auto.
int drawn_runs(tools::Draws& draws);
std::string text_of_runs(int runs);

// One changed run: its pieces, which together are whole sequences, and how they lie. No pieces: the whole batch.
template <typename Way>
struct ChangeOfRows {
  std::string text = {};
  std::vector<RowsOf> pieces = {};
  Way way = {};
  std::string pipeline = {};
  std::int64_t rows_left_out = 0;  // the last of each sequence: they may differ
  // The schedule of the simulated GPU; on another device the same call once more.
  std::optional<wavejit_simgpu_schedule> schedule = std::nullopt;
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

// A laboratory of such batches: what a family still says is `dimensions`, `draw`, `unchanged` where that is no packed call
// of 16 bits, and over_bytes: what becomes of the changes of a dimension where a batch of its base has 8 bits.
template <typename Batch, typename Dimension, typename Change>
struct RowsLaboratory {
  using Answers = std::vector<RowAnswer>;
  static int base(const Dimension& dimension) { return static_cast<int>(dimension.base); }
  static Change unchanged(const Batch& /*batch*/) { return {}; }  // one packed call
  static std::vector<Change> changes(const Dimension& dimension, const Batch& batch, tools::Draws& draws) {
    std::vector<Change> changes = dimension.changes(batch, draws);
    over_bytes(dimension.base, batch, changes);
    return changes;
  }
  static std::vector<RowsOf> pieces_of(const Batch& batch, const Change& change) {
    return change.pieces.empty() ? all_whole(batch) : change.pieces;
  }
  static tools::Result<std::optional<Answers>> changed(wavejit_engine* engine, const Batch& batch,
                                                       const Change& change) {
    return run_pieces(engine, batch, pieces_of(batch, change), change.way);
  }
  static void compare(const Batch& batch, const Dimension& /*dimension*/, const Change& change, const Answers& before,
                      const Answers& after, const auto& tell) {
    const AnswerShape shape = batch.answer_shape();
    const std::vector<RowsOf> pieces = pieces_of(batch, change);
    for (std::size_t sequence = 0; sequence < batch.sequences.size(); ++sequence)
      if (std::ranges::contains(pieces, sequence, &RowsOf::sequence))
        tell(static_cast<std::int64_t>(sequence), batch.descriptor(batch.sequences[sequence]),
             first_difference(shape, cut(shape, before[sequence], change.rows_left_out),
                              cut(shape, joined(pieces, after, sequence), change.rows_left_out)));
  }
};

// O [row][head][dim] and LSE [head][row] of packed rows in device memory.
class RowOutputs {
 public:
  RowOutputs(tools::CallMemory& memory, const AnswerShape& shape, std::int64_t rows);
  // The tensors of a call: all rows as one sequence, or `batch` of `length` rows each.
  template <typename Call>
  void describe(Call& call, std::int64_t batch, std::int64_t length) const {
    call.o = wavejit_dense_tensor(o_, static_cast<wavejit_dtype>(tools::type_of(shape_.type)), batch, length,
                                  shape_.heads, shape_.dim);
    call.lse = {.data = lse_,
                .dtype = WAVEJIT_FP32,
                .reserved = 0,
                .sizes = {batch, shape_.heads, length, 1},
                .strides = {batch == 1 ? shape_.heads * rows_ : length, rows_, 1, 1}};
  }
  // Waits, and gives each piece what it got; `starts` of rows.
  tools::Result<std::optional<std::vector<RowAnswer>>> read(wavejit_engine* engine, tools::CallMemory& memory,
                                                            std::span<const std::int32_t> starts) const;
  // The same, an answer a row.
  tools::Result<std::optional<std::vector<RowAnswer>>> read(wavejit_engine* engine, tools::CallMemory& memory) const;

 private:
  std::size_t numbers() const { return static_cast<std::size_t>(rows_ * shape_.heads); }
  AnswerShape shape_;
  std::int64_t rows_;
  void* o_;
  void* lse_;
};

// A tensor of one number a head; of none, no tensor.
inline wavejit_tensor head_numbers(tools::CallMemory& memory, const std::vector<float>& numbers) {
  if (numbers.empty()) return {};
  return wavejit_dense_tensor(memory.in(numbers), WAVEJIT_FP32, 1, std::ssize(numbers), 1, 1);
}

// From 2^−3 to below 4, of either sign, by exponents: scores then spread enough for maxima that grow.
std::vector<std::uint16_t> drawn_halves(tools::HalfType type, tools::Draws& draws, std::int64_t count);
std::vector<float> drawn_numbers(tools::Draws& draws, std::int64_t count, float scale);

// What stands where no row may look. NaN is the same in both types.
enum class Garbage : std::uint8_t { nan, infinity, minus_infinity };
constexpr Garbage garbage_in_turn(std::uint64_t number) { return static_cast<Garbage>(number % 3); }
const char* to_text(Garbage garbage);
std::uint16_t bits_of(Garbage garbage, tools::HalfType type);

}  // namespace wavejit::attention::program
