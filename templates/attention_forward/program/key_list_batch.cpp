// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/program/key_list_batch.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "templates/attention/program/invariance_rows.h"
#include "templates/attention/program/key_lists.h"

namespace wavejit::attention_forward::program {
namespace {

using tools::Draws;

constexpr std::uint16_t nan = 0x7FFF;  // of both types

// A score of −∞ is one of a key that has it in the last column (key_list_invariance.cpp, dense walks).
void set_last_column(std::vector<std::uint16_t>& rows, std::int64_t dim, std::uint16_t bits) {
  for (auto at = static_cast<std::size_t>(dim - 1); at < rows.size(); at += static_cast<std::size_t>(dim))
    rows[at] = bits;
}

std::string words_of(const KeyListBatch& batch) {
  std::string words =
      fmt::format("attention_forward {} b{} q{} k{} h{}/{} d{}{} lse top_k={}{}:mixed", to_text(batch.type),
                  batch.sequences, batch.queries, batch.keys, batch.query_heads, batch.kv_heads, batch.dim,
                  batch.causal ? " causal" : "", batch.top_k, batch.lists > 1 ? ":heads" : "");
  if (!batch.sink.empty()) words += " sink";
  if (batch.softcap != 0) words += fmt::format(" softcap={}", batch.softcap);
  return words;
}

}  // namespace

KeyListBatch draw_key_lists(const tools::InvarianceRequest& request) {
  Draws draws(request.seed, request.batch);
  // Few queries a batch, and lists of up to four chunks: what is drawn and copied costs more than what lists read.
  constexpr std::int64_t most_queries = 16;
  constexpr std::int64_t most_keys = 1500;
  constexpr std::int64_t most_entries = 900;
  constexpr std::array<std::int64_t, 8> groups = {1, 2, 4, 5, 12, 16, 33, 64};
  KeyListBatch batch;
  batch.slots_in_pages = true;
  batch.type = draws.one_in(2) ? tools::HalfType::fp16 : tools::HalfType::bf16;
  batch.queries = 1 + draws.below(3);
  batch.sequences = std::max<std::int64_t>(std::min(request.sequences, most_queries) / batch.queries, 1);
  batch.keys = batch.queries + draws.below(std::min(request.longest, most_keys));
  batch.kv_heads = 1 + draws.below(3);
  batch.query_heads = batch.kv_heads * groups[static_cast<std::size_t>(draws.below(groups.size()))];
  batch.dim = draws.one_in(3) ? 128 : 64;
  batch.top_k = 1 + draws.below(draws.one_in(2) ? most_entries : std::min(batch.keys * 2, most_entries));
  batch.lists = batch.kv_heads > 1 && draws.one_in(2) ? batch.kv_heads : 1;
  batch.causal = draws.one_in(2);
  if (draws.one_in(6)) batch.softcap = 20;
  batch.has_dense_walk = batch.softcap == 0;
  if (draws.one_in(4)) batch.sink = attention::program::drawn_numbers(draws, batch.query_heads, 4.0F);
  if (draws.one_in(2))
    for (std::int64_t sequence = 0; sequence < batch.sequences; ++sequence)
      batch.key_lengths.push_back(
          static_cast<std::int32_t>(batch.queries + draws.below(batch.keys - batch.queries + 1)));
  const auto drawn = [&](std::int64_t rows) {
    return attention::program::drawn_halves(batch.type, draws, rows * batch.dim);
  };
  batch.q = drawn(batch.tokens() * batch.query_heads);
  batch.k = drawn(batch.sequences * batch.keys * batch.kv_heads);
  batch.v = drawn(batch.sequences * batch.keys * batch.kv_heads);
  set_last_column(batch.q, batch.dim, tools::encode(batch.type, 2));
  set_last_column(batch.k, batch.dim, 0);
  const attention::program::ListWords words = {.top_k = batch.top_k, .slots = false, .heads = false, .mixed = true};
  for (std::int64_t token = 0; token < batch.tokens(); ++token) {
    const std::int64_t sequence = token / batch.queries;
    for (std::int64_t list = 0; list < batch.lists; ++list) {
      const auto row = attention::program::listed_row(
          words, draws.next(), batch.seen_by(sequence, token % batch.queries), batch.keys_of(sequence));
      for (const std::int64_t entry : row.entries) batch.indices.push_back(static_cast<std::int32_t>(entry));
      batch.counts.push_back(static_cast<std::int32_t>(row.count));
    }
  }
  batch.words = words_of(batch);
  return batch;
}

KeyListCache cache_of(const KeyListBatch& batch, std::int64_t page_size) {
  attention::program::KeyPlaces places = {.rows_behind = 0};
  if (page_size != 0) places = {.pages = attention::program::Paging{.size = page_size}};
  const std::vector<std::int64_t> lengths(static_cast<std::size_t>(batch.sequences), batch.keys);
  KeyListCache cache = {
      attention::program::placed_keys(lengths, places, static_cast<std::uint64_t>(batch.keys)), {}, {}};
  const std::int64_t row = batch.kv_heads * batch.dim;
  for (const auto& [from, to] : {std::pair{&batch.k, &cache.k}, {&batch.v, &cache.v}}) {
    to->assign(static_cast<std::size_t>(cache.slots() * row), nan);
    for (std::int64_t sequence = 0; sequence < batch.sequences; ++sequence)
      for (std::int64_t key = 0; key < batch.keys; ++key)
        std::copy_n(from->begin() + (((sequence * batch.keys) + key) * row), row,
                    to->begin() + (cache.slot_of(sequence, key) * row));
  }
  return cache;
}

KeyListCache turned(const KeyListBatch& batch, const KeyListCache& cache) {
  KeyListCache other = cache;
  const std::int64_t row = batch.kv_heads * batch.dim;
  const std::int64_t slots = cache.slots();
  for (const auto& [from, to] : {std::pair{&cache.k, &other.k}, {&cache.v, &other.v}})
    for (std::int64_t slot = 0; slot < slots; ++slot)
      std::copy_n(from->begin() + (slot * row), row, to->begin() + ((slots - 1 - slot) * row));
  return other;
}

std::vector<std::int32_t> slots_of(const KeyListBatch& batch, const KeyListCache& cache) {
  std::vector<std::int32_t> slots = batch.indices;
  for (std::int64_t token = 0; token < batch.tokens(); ++token) {
    const std::int64_t sequence = token / batch.queries;
    const std::int64_t sees = batch.seen_by(sequence, token % batch.queries);
    const auto first = slots.begin() + (token * batch.lists * batch.top_k);
    std::transform(first, first + (batch.lists * batch.top_k), first, [&](std::int32_t entry) {
      return entry >= 0 && entry < sees ? static_cast<std::int32_t>(cache.slot_of(sequence, entry)) : -1;
    });
  }
  return slots;
}

}  // namespace wavejit::attention_forward::program
