// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/sparse_indexer/program/invariance.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "tools/array_problem.h"
#include "tools/call_memory.h"
#include "tools/empty_call.h"
#include "tools/invariance/draws.h"
#include "tools/invariance/runner.h"

namespace wavejit::sparse_indexer::program {
namespace {

using tools::CallMemory;
using tools::checked;
using tools::FirstDifference;
using tools::InvarianceRequest;
using tools::Result;

constexpr std::int64_t index_dims = 128;

// Sequences of one to a few rows. A sequence sees its first keys only, and each of its rows one more than the one
// before.
struct Batch {
  std::int64_t sequences = 1;
  std::int64_t rows = 1;
  std::int64_t keys = 1;
  std::int64_t heads = 1;
  std::int64_t top = 1;
  bool fp16 = false;
  std::vector<std::int32_t> lengths;
  std::vector<std::uint16_t> queries;  // [sequences][rows][heads][index_dims]
  std::vector<std::uint16_t> vectors;  // [sequences][keys][index_dims]
  std::vector<float> weights;          // [sequences][rows][heads]
  std::vector<float> scales;           // [sequences][keys]
};

// Which rows of which sequences make a call, and how.
struct Piece {
  std::int64_t sequence;
  std::int64_t row;
  std::int64_t rows;
};
struct Change {
  std::string text = {};
  std::vector<std::vector<Piece>> calls = {};  // those of a call have as many rows each
  std::int64_t keys_behind = 0;                // of NaN
  std::int64_t page = 0;                       // 0: dense
  std::int64_t workspace_rows = 0;             // 0: scores have a tensor
  bool given = false;                          // the list is made by a call of its own
  bool other_weights = false;
  std::optional<wavejit_simgpu_schedule> schedule = std::nullopt;
};

// What a row got.
struct Answer {
  std::vector<std::uint32_t> scores;  // empty: not told
  std::vector<std::int32_t> indices;
  std::vector<std::uint32_t> values;
};

std::vector<Piece> whole(const Batch& batch) {
  std::vector<Piece> pieces;
  pieces.reserve(static_cast<std::size_t>(batch.sequences));
  for (std::int64_t sequence = 0; sequence < batch.sequences; ++sequence)
    pieces.push_back({.sequence = sequence, .row = 0, .rows = batch.rows});
  return pieces;
}

template <typename Element>
void append(std::vector<Element>& to, const std::vector<Element>& from, std::int64_t first, std::int64_t count) {
  to.insert(to.end(), from.begin() + first, from.begin() + first + count);
}

// The host's arrays of one call.
struct Inputs {
  std::int64_t batch = 0;
  std::int64_t rows = 0;
  std::int64_t keys = 0;
  std::int64_t slots = 0;  // of all sequences
  std::vector<std::uint16_t> queries = {};
  std::vector<std::uint16_t> vectors = {};
  std::vector<float> weights = {};
  std::vector<float> scales = {};
  std::vector<std::int32_t> ends = {};  // of each row
  std::vector<std::int32_t> table = {};
};

Inputs inputs_of(const Batch& batch, const std::vector<Piece>& pieces, const Change& change) {
  Inputs in = {.batch = std::ssize(pieces), .rows = pieces.front().rows, .keys = batch.keys + change.keys_behind};
  const std::int64_t columns = change.page == 0 ? 0 : (in.keys + change.page - 1) / change.page;
  const std::int64_t own = change.page == 0 ? in.keys : columns * change.page;
  in.slots = own * in.batch;
  constexpr std::uint16_t nan = 0xFFFF;
  in.vectors.assign(static_cast<std::size_t>(in.slots * index_dims), nan);
  in.scales.assign(static_cast<std::size_t>(in.slots), std::numeric_limits<float>::quiet_NaN());
  for (std::int64_t number = 0; number < in.batch; ++number) {
    const Piece& piece = pieces[static_cast<std::size_t>(number)];
    const std::int64_t first = (piece.sequence * batch.rows) + piece.row;
    append(in.queries, batch.queries, first * batch.heads * index_dims, piece.rows * batch.heads * index_dims);
    append(in.weights, batch.weights, first * batch.heads, piece.rows * batch.heads);
    const std::int32_t length = batch.lengths[static_cast<std::size_t>(piece.sequence)];
    for (std::int64_t row = piece.row; row < piece.row + piece.rows; ++row)
      in.ends.push_back(static_cast<std::int32_t>(std::max<std::int64_t>(length - (batch.rows - 1 - row), 0)));
    for (std::int64_t key = 0; key < batch.keys; ++key) {
      // Pages of a sequence lie apart, and descend.
      const std::int64_t slot =
          change.page == 0
              ? (number * own) + key
              : ((((columns - 1 - (key / change.page)) * in.batch) + number) * change.page) + (key % change.page);
      const std::int64_t from = (piece.sequence * batch.keys) + key;
      std::copy_n(batch.vectors.begin() + (from * index_dims), index_dims, in.vectors.begin() + (slot * index_dims));
      in.scales[static_cast<std::size_t>(slot)] = batch.scales[static_cast<std::size_t>(from)];
    }
    for (std::int64_t column = 0; column < columns; ++column)
      in.table.push_back(static_cast<std::int32_t>(((columns - 1 - column) * in.batch) + number));
  }
  if (change.other_weights)
    for (float& weight : in.weights) weight *= 1.25F;
  return in;
}

// Answers of a call's rows, in its order.
Result<std::vector<Answer>> run_call(wavejit_engine* engine, const Batch& batch, const std::vector<Piece>& pieces,
                                     const Change& change) {
  const Inputs in = inputs_of(batch, pieces, change);
  CallMemory arrays(engine);
  const auto type = batch.fp16 ? WAVEJIT_FP16 : WAVEJIT_BF16;
  const auto all_rows = static_cast<std::size_t>(in.batch * in.rows);
  const std::int64_t inner = change.page == 0 ? in.keys : change.page;
  auto call = tools::empty_call<wavejit_sparse_indexer_arguments>(WAVEJIT_SPARSE_INDEXER);
  call.queries = wavejit_dense_tensor(arrays.in(in.queries), type, in.batch, in.rows, batch.heads, index_dims);
  call.keys = wavejit_dense_tensor(arrays.in(in.vectors), type, in.slots / inner, inner, 1, index_dims);
  call.weights = wavejit_dense_tensor(arrays.in(in.weights), WAVEJIT_FP32, in.batch, in.rows, batch.heads, 1);
  call.key_scales = wavejit_dense_tensor(arrays.in(in.scales), WAVEJIT_FP32, in.slots / inner, inner, 1, 1);
  call.key_ends = arrays.in(in.ends);
  if (change.page != 0) {
    call.pages.block_table = arrays.in(in.table);
    call.pages.table_columns = (in.keys + change.page - 1) / change.page;
    call.max_key_length = in.keys;
  }
  const std::size_t row_bytes = (static_cast<std::size_t>(in.keys) * 4 + 127) / 128 * 128;
  void* scores = nullptr;
  if (change.workspace_rows == 0) {
    scores = arrays.out(all_rows * static_cast<std::size_t>(in.keys) * 4);
    call.scores = wavejit_dense_tensor(scores, WAVEJIT_FP32, in.batch, in.rows, 1, in.keys);
  } else {
    call.split.workspace_bytes = static_cast<std::size_t>(change.workspace_rows) * row_bytes;
    call.split.workspace = arrays.out(call.split.workspace_bytes);
  }
  const std::size_t listed = all_rows * static_cast<std::size_t>(batch.top);
  void* indices = arrays.out(listed * 4);
  void* values = arrays.out(listed * 4);
  wavejit_sparse_indexer_arguments list = call;
  list.indices = static_cast<std::int32_t*>(indices);
  list.values = static_cast<float*>(values);
  list.top_k = batch.top;
  if (!arrays.good()) return std::unexpected(arrays.good().error());
  if (change.given) {
    arrays.keep(checked(wavejit_sparse_indexer(engine, &call, nullptr)));
    list.queries.data = list.keys.data = list.weights.data = list.key_scales.data = nullptr;
  }
  arrays.keep(checked(wavejit_sparse_indexer(engine, &list, nullptr)));
  arrays.keep(checked(wavejit_device_synchronize(engine)));
  if (!arrays.good()) return std::unexpected(arrays.good().error());
  const auto told_indices = arrays.back<std::int32_t>(indices, listed);
  const auto told_values = arrays.back<std::uint32_t>(values, listed);
  std::vector<std::uint32_t> told_scores;
  if (scores != nullptr) told_scores = arrays.back<std::uint32_t>(scores, all_rows * static_cast<std::size_t>(in.keys));
  if (!arrays.good()) return std::unexpected(arrays.good().error());
  std::vector<Answer> answers(all_rows);
  for (std::size_t row = 0; row < all_rows; ++row) {
    const auto place = static_cast<std::int64_t>(row);
    append(answers[row].indices, told_indices, place * batch.top, batch.top);
    append(answers[row].values, told_values, place * batch.top, batch.top);
    // Those behind the sequence are the padding's.
    if (scores != nullptr) append(answers[row].scores, told_scores, place * in.keys, batch.keys);
  }
  return answers;
}

std::int64_t between(tools::Draws& draws, std::int64_t least, std::int64_t most) {
  return least + draws.below(most - least + 1);
}

Batch draw_batch(const InvarianceRequest& request) {
  tools::Draws draws(request.seed, request.batch);
  Batch batch;
  batch.rows = between(draws, 1, 5);
  batch.sequences = std::max<std::int64_t>(request.sequences / batch.rows, 2);
  batch.keys = between(draws, 1, request.longest);
  batch.heads = between(draws, 1, 128);
  batch.top = between(draws, 1, std::max<std::int64_t>(batch.keys / 2, 1));
  batch.fp16 = between(draws, 0, 1) == 1;
  for (std::int64_t sequence = 0; sequence < batch.sequences; ++sequence)
    batch.lengths.push_back(static_cast<std::int32_t>(between(draws, 0, batch.keys)));
  const auto drawn = [&](std::uint64_t part, std::int64_t count) {
    return tools::seeded_values((request.seed * 64) + (request.batch * 4) + part, static_cast<std::size_t>(count));
  };
  const auto halves = [&](std::uint64_t part, std::int64_t count) {
    std::vector<std::uint16_t> stored;
    for (const float value : drawn(part, count))
      stored.push_back(
          tools::encode(batch.fp16 ? tools::HalfType::fp16 : tools::HalfType::bf16, static_cast<double>(value)));
    return stored;
  };
  batch.queries = halves(0, batch.sequences * batch.rows * batch.heads * index_dims);
  batch.vectors = halves(1, batch.sequences * batch.keys * index_dims);
  batch.weights = drawn(2, batch.sequences * batch.rows * batch.heads);
  batch.scales = drawn(3, batch.sequences * batch.keys);
  // Some keys twice: equal scores.
  for (std::int64_t key = 3; key < batch.sequences * batch.keys; key += 5) {
    std::copy_n(batch.vectors.begin() + ((key - 2) * index_dims), index_dims,
                batch.vectors.begin() + (key * index_dims));
    batch.scales[static_cast<std::size_t>(key)] = batch.scales[static_cast<std::size_t>(key - 2)];
  }
  return batch;
}

using Dimension = tools::DimensionOf<Batch, Change, Change>;

const std::vector<Dimension>& all_dimensions() {
  static const std::vector<Dimension> all = {
      {{.name = "list-alone", .changes = "each sequence in a call of its own"},
       [](const Batch& batch, tools::Draws&) {
         Change change;
         for (const Piece& piece : whole(batch)) change.calls.push_back({piece});
         return change;
       }},
      {{.name = "list-rows", .changes = "each row in a call of its own"},
       [](const Batch& batch, tools::Draws&) {
         Change change;
         for (std::int64_t sequence = 0; sequence < batch.sequences; ++sequence)
           for (std::int64_t row = 0; row < batch.rows; ++row)
             change.calls.push_back({{.sequence = sequence, .row = row, .rows = 1}});
         return change;
       }},
      {{.name = "list-order", .changes = "sequences in the opposite order"},
       [](const Batch& batch, tools::Draws&) {
         Change change = {.calls = {whole(batch)}};
         std::ranges::reverse(change.calls.front());
         return change;
       }},
      {{.name = "list-padding", .changes = "keys of NaN behind all sequences"},
       [](const Batch& batch, tools::Draws& draws) {
         const std::int64_t behind = between(draws, 1, 700);
         return Change{.text = fmt::format("behind={}", behind), .calls = {whole(batch)}, .keys_behind = behind};
       }},
      {{.name = "list-pages", .changes = "keys in pages, which lie anywhere"},
       [](const Batch& batch, tools::Draws& draws) {
         constexpr std::array<std::int64_t, 4> sizes = {1, 16, 48, 64};
         const std::int64_t page = sizes[static_cast<std::size_t>(between(draws, 0, 3))];
         return Change{.text = fmt::format("page={}", page), .calls = {whole(batch)}, .page = page};
       }},
      {{.name = "list-rounds", .changes = "scores in a workspace of few rows"},
       [](const Batch& batch, tools::Draws& draws) {
         const std::int64_t rows = between(draws, 1, batch.sequences * batch.rows);
         return Change{.text = fmt::format("workspace_rows={}", rows), .calls = {whole(batch)}, .workspace_rows = rows};
       }},
      {{.name = "list-given", .changes = "lists by a call of their own, of given scores"},
       [](const Batch& batch, tools::Draws&) { return Change{.calls = {whole(batch)}, .given = true}; }},
      {{.name = "list-schedule", .changes = "the order in which waves run (simulated GPUs)"},
       [](const Batch& batch, tools::Draws&) {
         return Change{.text = "reverse", .calls = {whole(batch)}, .schedule = WAVEJIT_SIMGPU_REVERSE};
       }},
      {{.name = "list-other-weights", .changes = "weights times 1.25: shows", .control = true},
       [](const Batch& batch, tools::Draws&) { return Change{.calls = {whole(batch)}, .other_weights = true}; }},
  };
  return all;
}

// The rows of all calls, by their place in the batch.
Result<std::vector<Answer>> ran(wavejit_engine* engine, const Batch& batch, const Change& change) {
  std::vector<Answer> rows(static_cast<std::size_t>(batch.sequences * batch.rows));
  for (const std::vector<Piece>& pieces : change.calls) {
    auto answers = run_call(engine, batch, pieces, change);
    if (!answers) return std::unexpected(answers.error());
    std::size_t next = 0;
    for (const Piece& piece : pieces)
      for (std::int64_t row = piece.row; row < piece.row + piece.rows; ++row)
        rows[static_cast<std::size_t>((piece.sequence * batch.rows) + row)] = std::move((*answers)[next++]);
  }
  return rows;
}

std::optional<FirstDifference> first_difference(const Answer& before, const Answer& after, std::int64_t row) {
  const auto differ = [&](const char* tensor, const auto& one, const auto& other,
                          auto number) -> std::optional<FirstDifference> {
    const auto [a, b] = std::ranges::mismatch(one, other);
    if (a == one.end()) return std::nullopt;
    return FirstDifference{
        .tensor = tensor, .token = row, .dim = a - one.begin(), .before = number(*a), .after = number(*b)};
  };
  const auto as_float = [](std::uint32_t bits) { return static_cast<double>(std::bit_cast<float>(bits)); };
  if (!before.scores.empty() && !after.scores.empty())
    if (auto found = differ("scores", before.scores, after.scores, as_float)) return found;
  if (auto found = differ("indices", before.indices, after.indices, [](std::int32_t index) { return double(index); }))
    return found;
  return differ("values", before.values, after.values, as_float);
}

struct Laboratory {
  using Answers = std::vector<Answer>;
  static constexpr auto& dimensions = all_dimensions;
  static constexpr auto& draw = draw_batch;
  static Change unchanged(const Batch& batch) { return {.calls = {whole(batch)}}; }
  static constexpr auto& changed = ran;
  static void compare(const Batch& batch, const Dimension& /*dimension*/, const Change& /*change*/,
                      const Answers& before, const Answers& after, const auto& tell) {
    const std::string words = fmt::format("sparse_indexer {} b1 q1 k{} h{} key_scales top={}",
                                          batch.fp16 ? "fp16" : "bf16", batch.keys, batch.heads, batch.top);
    for (std::size_t row = 0; row < before.size(); ++row) {
      const auto number = static_cast<std::int64_t>(row);
      tell(number / batch.rows, words, first_difference(before[row], after[row], number % batch.rows));
    }
  }
};

}  // namespace

const tools::Invariance& indexer_invariance() { return tools::only<tools::InvarianceOf<Laboratory>>(); }

}  // namespace wavejit::sparse_indexer::program
