// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attention.h"

#include <algorithm>
#include <cmath>

namespace serving {

namespace {

std::size_t half_bytes(std::int64_t a, std::int64_t b, std::int64_t c, std::int64_t d) {
  return static_cast<std::size_t>(a * b * c * d) * sizeof(Half);
}

}  // namespace

std::vector<std::string> kernel_lines(const HeadShape& shape, const Limits& limits) {
  // One token to a whole step's: the range stands for every class of length in it.
  return {"attention_forward fp16 b" + std::to_string(limits.slots) + " q1.." + std::to_string(limits.tokens_per_step) +
          " k" + std::to_string(shape.longest) + " h" + std::to_string(shape.query_heads) + "/" +
          std::to_string(shape.kv_heads) + " d" + std::to_string(shape.head_dim) +
          " causal layout=paged:" + std::to_string(page_size)};
}

Attention::Attention(wavejit::Engine& engine, const HeadShape& shape, const Limits& limits)
    : engine_(engine),
      shape_(shape),
      limits_(limits),
      queries_(engine, half_bytes(1, limits.tokens_per_step, shape.query_heads, shape.head_dim)),
      answers_(engine, queries_.bytes()),
      block_table_(engine, sizeof(std::int32_t) * static_cast<std::size_t>(limits.slots * pages_of(shape.longest))),
      query_starts_(engine, sizeof(std::int32_t) * static_cast<std::size_t>(limits.slots + 1)),
      key_lengths_(engine, sizeof(std::int32_t) * static_cast<std::size_t>(limits.slots)),
      columns_(pages_of(shape.longest)) {
  const std::size_t bytes = half_bytes(2 * limits.pages, page_size, shape.kv_heads, shape.head_dim);
  for (int layer = 0; layer < shape.layers; ++layer) cache_.emplace_back(engine, bytes);
}

void Attention::begin_step(const std::vector<Piece>& pieces, const std::vector<Sequence>& sequences) {
  pieces_ = pieces;
  pages_.clear();
  rows_ = 0;
  longest_piece_ = 0;
  std::vector<std::int32_t> lengths(static_cast<std::size_t>(limits_.slots), 0);
  std::vector<std::int32_t> counts(lengths);
  // Entries past a sequence's length are never read: they may be anything.
  std::vector<std::int32_t> table(static_cast<std::size_t>(limits_.slots * columns_), -1);
  for (const Piece& piece : pieces) {
    lengths[piece.slot] = piece.first + piece.count;
    counts[piece.slot] = piece.count;
    longest_piece_ = std::max(longest_piece_, piece.count);
    pages_.push_back(sequences[piece.sequence].pages);
    std::copy(pages_.back().begin(), pages_.back().end(), table.begin() + piece.slot * columns_);
  }
  // A slot without rows is a sequence without queries: allowed, and costs nothing.
  std::vector<std::int32_t> starts = {0};
  for (const std::int32_t count : counts) starts.push_back(rows_ += count);
  query_starts_.write(starts);
  key_lengths_.write(lengths);
  block_table_.write(table);
}

// Pages of K and V stand in turn: the stride from page to page is that of two.
wavejit_tensor Attention::pages_of_layer(int layer, bool values) const {
  wavejit_tensor pages =
      wavejit::dense(cache_[layer], WAVEJIT_FP16, limits_.pages, page_size, shape_.kv_heads, shape_.head_dim);
  const std::int64_t elements = pages.strides[0];
  pages.strides[0] = 2 * elements;
  if (values) pages.data = static_cast<Half*>(pages.data) + elements;
  return pages;
}

// Appending is the engine's own work: a row of keys or values to its place in its page.
void Attention::append(const wavejit_tensor& cache, const std::vector<Half>& rows) {
  const std::int64_t row = cache.strides[1];
  const Half* from = rows.data();
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    const Piece& piece = pieces_[i];
    for (int token = piece.first; token < piece.first + piece.count; ++token, from += row) {
      Half* page = static_cast<Half*>(cache.data) + pages_[i][token / page_size] * cache.strides[0];
      wavejit::check(wavejit_device_copy_in(engine_.get(), page + (token % page_size) * row, from, row * sizeof(Half)));
    }
  }
}

void Attention::fill(int layer, const std::vector<Half>& keys, const std::vector<Half>& values) {
  append(pages_of_layer(layer, false), keys);
  append(pages_of_layer(layer, true), values);
}

std::vector<Half> Attention::attend(int layer, const std::vector<Half>& queries, const std::vector<Half>& keys,
                                    const std::vector<Half>& values) {
  wavejit::AttentionForward call;
  call.k = pages_of_layer(layer, false);
  call.v = pages_of_layer(layer, true);
  append(call.k, keys);
  append(call.v, values);
  queries_.write(queries);
  // Queries are packed: prompts and single tokens one after the other, as they come.
  call.q = wavejit::dense(queries_, WAVEJIT_FP16, 1, rows_, shape_.query_heads, shape_.head_dim);
  call.o = wavejit::dense(answers_, WAVEJIT_FP16, 1, rows_, shape_.query_heads, shape_.head_dim);
  call.sequences.query_starts = static_cast<const std::int32_t*>(query_starts_.data());
  call.sequences.count = limits_.slots;
  call.sequences.max_query_length = longest_piece_;
  // Keys are not: they stand in pages, and a slot's row of the block table says in which.
  call.pages.block_table = static_cast<const std::int32_t*>(block_table_.data());
  call.pages.table_columns = columns_;
  call.sequences.max_key_length = shape_.longest;
  call.sequences.key_lengths = static_cast<const std::int32_t*>(key_lengths_.data());
  // The last row of a piece stands at its sequence's last key, whether the piece is a prompt, its end or one token.
  call.mask.bits = WAVEJIT_MASK_CAUSAL;
  call.head.flags = flags_;
  call.head.report = report_;
  call.modifiers.scale = 1.0F / std::sqrt(static_cast<float>(shape_.head_dim));
  engine_.attention_forward(call);
  engine_.synchronize();

  std::vector<Half> answers(queries.size());
  wavejit::check(
      wavejit_device_copy_out(engine_.get(), answers.data(), answers_.data(), answers.size() * sizeof(Half)));
  return answers;
}

}  // namespace serving
