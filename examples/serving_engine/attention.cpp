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
  const auto line = [&](int rows) {
    return "attention_forward fp16 b" + std::to_string(limits.slots) + " q" + std::to_string(rows) + " k" +
           std::to_string(shape.longest) + " h" + std::to_string(shape.query_heads) + "/" +
           std::to_string(shape.kv_heads) + " d" + std::to_string(shape.head_dim) + " causal";
  };
  std::vector<std::string> lines;
  for (const int rows : {32, 64, 255, 256}) {
    lines.push_back(line(std::min(rows, limits.tokens_per_step)));
    if (rows >= limits.tokens_per_step) break;
  }
  return lines;
}

Attention::Attention(wavejit::Engine& engine, const HeadShape& shape, const Limits& limits)
    : engine_(engine),
      shape_(shape),
      limits_(limits),
      queries_(engine, half_bytes(1, limits.tokens_per_step, shape.query_heads, shape.head_dim)),
      answers_(engine, queries_.bytes()),
      query_starts_(engine, sizeof(std::int32_t) * static_cast<std::size_t>(limits.slots + 1)),
      key_lengths_(engine, sizeof(std::int32_t) * static_cast<std::size_t>(limits.slots)) {
  const std::size_t bytes = half_bytes(limits.slots, shape.longest, shape.kv_heads, shape.head_dim);
  for (int layer = 0; layer < shape.layers; ++layer) {
    keys_.emplace_back(engine, bytes);
    values_.emplace_back(engine, bytes);
  }
}

void Attention::begin_step(const std::vector<Piece>& pieces) {
  pieces_ = pieces;
  rows_ = 0;
  longest_piece_ = 0;
  std::vector<std::int32_t> lengths(static_cast<std::size_t>(limits_.slots), 0);
  std::vector<std::int32_t> counts(lengths);
  for (const Piece& piece : pieces) {
    lengths[piece.slot] = piece.first + piece.count;
    counts[piece.slot] = piece.count;
    longest_piece_ = std::max(longest_piece_, piece.count);
  }
  // A slot without rows is a sequence without queries: allowed, and costs nothing.
  std::vector<std::int32_t> starts = {0};
  for (const std::int32_t count : counts) starts.push_back(rows_ += count);
  query_starts_.write(starts);
  key_lengths_.write(lengths);
}

void Attention::append(const wavejit::DeviceBuffer& cache, const std::vector<Half>& rows) {
  const std::size_t row = half_bytes(1, 1, shape_.kv_heads, shape_.head_dim);
  const auto* from = reinterpret_cast<const std::byte*>(rows.data());
  for (const Piece& piece : pieces_) {
    const std::size_t at = static_cast<std::size_t>(piece.slot) * shape_.longest + piece.first;
    wavejit::check(wavejit_device_copy_in(engine_.get(), static_cast<std::byte*>(cache.data()) + at * row, from,
                                          piece.count * row));
    from += piece.count * row;
  }
}

std::vector<Half> Attention::attend(int layer, const std::vector<Half>& queries, const std::vector<Half>& keys,
                                    const std::vector<Half>& values) {
  append(keys_[layer], keys);
  append(values_[layer], values);
  queries_.write(queries);

  wavejit::AttentionForward call;
  // Queries are packed: prompts and single tokens one after the other, as they come.
  call.q = wavejit::dense(queries_, WAVEJIT_FP16, 1, rows_, shape_.query_heads, shape_.head_dim);
  call.o = wavejit::dense(answers_, WAVEJIT_FP16, 1, rows_, shape_.query_heads, shape_.head_dim);
  call.query_starts = static_cast<const std::int32_t*>(query_starts_.data());
  call.sequences = limits_.slots;
  call.max_query_length = longest_piece_;
  // Keys are not: each slot has room for the longest sequence, and only its first key_lengths[slot] count.
  call.k = wavejit::dense(keys_[layer], WAVEJIT_FP16, limits_.slots, shape_.longest, shape_.kv_heads, shape_.head_dim);
  call.v = call.k;
  call.v.data = values_[layer].data();
  call.key_lengths = static_cast<const std::int32_t*>(key_lengths_.data());
  // The last row of a piece stands at its sequence's last key, whether the piece is a prompt, its end or one token.
  call.mask = WAVEJIT_MASK_CAUSAL;
  call.scale = 1.0F / std::sqrt(static_cast<float>(shape_.head_dim));
  engine_.attention_forward(call);
  engine_.synchronize();

  std::vector<Half> answers(queries.size());
  wavejit::check(
      wavejit_device_copy_out(engine_.get(), answers.data(), answers_.data(), answers.size() * sizeof(Half)));
  return answers;
}

}  // namespace serving
