// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/program/invariance_batch.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace wavejit::attention_forward::program {
namespace {

void draw_tensors(const Batch& batch, Draws& draws, DrawnSequence& one) {
  one.q = drawn_halves(batch.type, draws, one.rows * batch.query_heads * batch.dim);
  one.k = drawn_halves(batch.type, draws, one.keys * batch.kv_heads * batch.dim);
  one.v = drawn_halves(batch.type, draws, one.keys * batch.kv_heads * batch.dim);
}

// One sequence in three has up to five blocks of rows, and the keys of several blocks.
void draw_lists(Batch& batch, Draws& draws, const BatchSize& size) {
  const std::array<std::int64_t, 3> heads = {1, batch.kv_heads, batch.query_heads};
  batch.list_rows = draws.one_in(2) ? 64 : 128;
  batch.list_keys = draws.one_in(2) ? 64 : 128;
  batch.list_heads = heads[static_cast<std::size_t>(batch.number % heads.size())];
  batch.list_percent = 20 + draws.below(60);
  for (DrawnSequence& one : batch.sequences) {
    if (!draws.one_in(3)) continue;
    one.rows = 60 + draws.below(240);
    one.keys = std::clamp<std::int64_t>(100 + draws.below(draws.one_in(8) ? 1800 : 500), 1, size.longest);
    draw_tensors(batch, draws, one);
  }
}

}  // namespace

std::string Batch::descriptor(const DrawnSequence& of) const {
  std::string text = fmt::format("attention_forward {} b1 q{} k{} h{}", to_text(type), of.rows, of.keys, query_heads);
  if (kv_heads != query_heads) text += fmt::format("/{}", kv_heads);
  text += fmt::format(" d{}", dim);
  if (causal) text += " causal";
  if (window_left) text += fmt::format(" window={},-1", *window_left);
  if (kind != nullptr) text += fmt::format(" {}={}", kind->word, number_of_kind);
  if (cache.queries) text += " queries=e4m3";
  text += " lse";
  if (!alibi.empty()) text += " alibi=h";
  if (!sink.empty()) text += " sink";
  if (softcap != 0) text += fmt::format(" softcap={}", softcap);
  if (list_rows != 0) text += fmt::format(" lists={}x{}:{}", list_rows, list_keys, list_percent);
  return text;
}

Batch draw_batch(std::uint64_t seed, std::uint64_t number, const BatchSize& size) {
  Draws draws(seed, number);
  const auto one_in = [&](std::int64_t count) { return draws.one_in(count); };
  Batch batch;
  batch.number = number;
  batch.type = one_in(2) ? HalfType::fp16 : HalfType::bf16;
  batch.dim = one_in(3) || size.byte_queries ? 128 : 64;
  batch.kv_heads = one_in(4) ? 2 : 1;
  const std::int64_t group = 1 + draws.below(one_in(3) ? 16 : 4);
  batch.query_heads = batch.kv_heads * group;
  batch.causal = !one_in(3);
  // A window and slopes count from the diagonal: where rows move apart from their keys they must move with it.
  if (batch.causal && one_in(4)) batch.window_left = draws.below(2) == 0 ? draws.below(40) : draws.below(size.longest);
  if (batch.causal && one_in(5)) batch.alibi = drawn_numbers(draws, batch.query_heads, 0.1F);
  if (one_in(5)) batch.sink = drawn_numbers(draws, batch.query_heads, 4.0F);
  if (one_in(6)) batch.softcap = 20;
  // Pieces of prompts in one batch of four; else what a step of decoding has.
  const bool has_pieces = one_in(4);
  const std::int64_t most_rows = has_pieces ? std::max<std::int64_t>(70 / group, 12) : 4;
  for (std::int64_t i = 0; i < size.sequences; ++i) {
    DrawnSequence one;
    // Most are short; one in 40 passes the border of a chunk, and one in 500 may be of any length.
    const bool is_long = one_in(40);
    one.rows = 1 + draws.below(is_long ? std::min<std::int64_t>(most_rows, 3) : 1 + draws.below(most_rows));
    one.keys = !is_long ? 1 + draws.below(130) : one_in(12) ? 1 + draws.below(size.longest) : 1000 + draws.below(1500);
    one.keys = std::clamp<std::int64_t>(one.keys, 1, size.longest);
    draw_tensors(batch, draws, one);
    batch.sequences.push_back(std::move(one));
  }
  // One longer than others may be: two kernels share such a call.
  if (has_pieces && size.sequences > 1) {
    DrawnSequence& one = batch.sequences[static_cast<std::size_t>(draws.below(size.sequences))];
    one.rows = 33 + draws.below(48);
    one.q = drawn_halves(batch.type, draws, one.rows * batch.query_heads * batch.dim);
  }
  if (size.byte_queries) {
    batch.softcap = 0;
    batch.alibi = {};
  }
  if (size.lists) draw_lists(batch, draws, size);
  // Drawn last, so that earlier draws do not depend on kinds of masks. With modifiers, some of their kernels do not exist.
  const bool modified = !batch.alibi.empty() || batch.softcap != 0;
  const attention::MaskKind& kind =
      attention::mask_kinds[static_cast<std::size_t>(number % attention::mask_kinds.size())];
  const bool causal = (kind.beside & WAVEJIT_MASK_CAUSAL) != 0;
  if (batch.causal == causal && !batch.window_left && !modified && !size.lists && one_in(3)) {
    batch.kind = &kind;
    batch.number_of_kind = static_cast<std::int32_t>(2 + draws.below(one_in(2) ? 100 : size.longest));
  }
  return batch;
}

}  // namespace wavejit::attention_forward::program
