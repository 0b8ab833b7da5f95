// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What may change about a call with lists of keys: the batch that such calls are drawn from.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "templates/attention/program/key_lists.h"
#include "templates/attention/program/list_laboratory.h"
#include "templates/attention_forward/program/answers.h"
#include "templates/attention_forward/program/vocabulary.h"

namespace wavejit::attention_forward::program {
namespace {

std::string words_of(const ListedQueries& batch) {
  std::string words =
      fmt::format("attention_forward {} b{} q{} k{} h{}/{} d{}{} lse top_k={}{}:mixed", to_text(batch.type),
                  batch.sequences, batch.queries, batch.keys, batch.query_heads, batch.kv_heads, batch.dim,
                  batch.causal ? " causal" : "", batch.top_k, batch.lists > 1 ? ":heads" : "");
  if (!batch.sink.empty()) words += " sink";
  if (batch.softcap != 0) words += fmt::format(" softcap={}", batch.softcap);
  return words;
}

ListedQueries draw_key_lists(const InvarianceRequest& request) {
  Draws draws(request.seed, request.batch);
  // Few queries a batch, and lists of up to four chunks: what is drawn and copied costs more than what lists read.
  constexpr std::int64_t most_queries = 16;
  constexpr std::int64_t most_keys = 1500;
  constexpr std::int64_t most_entries = 900;
  constexpr std::array<std::int64_t, 8> groups = {1, 2, 4, 5, 12, 16, 33, 64};
  ListedQueries batch;
  batch.slots_in_pages = true;
  batch.type = draws.one_in(2) ? HalfType::fp16 : HalfType::bf16;
  batch.queries = 1 + draws.below(3);
  batch.sequences = std::max<std::int64_t>(std::min(request.sequences, most_queries) / batch.queries, 1);
  batch.keys = batch.queries + draws.below(std::min(request.longest, most_keys));
  batch.kv_heads = 1 + draws.below(3);
  batch.query_heads = batch.kv_heads * groups[static_cast<std::size_t>(draws.below(groups.size()))];
  batch.dim = batch.dim_v = draws.one_in(3) ? 128 : 64;
  batch.top_k = 1 + draws.below(draws.one_in(2) ? most_entries : std::min(batch.keys * 2, most_entries));
  batch.lists = batch.kv_heads > 1 && draws.one_in(2) ? batch.kv_heads : 1;
  batch.causal = draws.one_in(2);
  if (draws.one_in(6)) batch.softcap = 20;
  batch.has_dense_walk = batch.softcap == 0;
  if (draws.one_in(4)) batch.sink = drawn_numbers(draws, batch.query_heads, 4.0F);
  if (draws.one_in(2))
    for (std::int64_t sequence = 0; sequence < batch.sequences; ++sequence)
      batch.key_lengths.push_back(
          static_cast<std::int32_t>(batch.queries + draws.below(batch.keys - batch.queries + 1)));
  const auto drawn = [&](std::int64_t rows) { return drawn_halves(batch.type, draws, rows * batch.dim); };
  batch.q = drawn(batch.tokens() * batch.query_heads);
  batch.k = drawn(batch.sequences * batch.keys * batch.kv_heads);
  batch.v = drawn(batch.sequences * batch.keys * batch.kv_heads);
  clear_last_column(batch);
  const ListWords words = {.top_k = batch.top_k, .slots = false, .heads = false, .mixed = true};
  for (std::int64_t token = 0; token < batch.tokens(); ++token) {
    for (std::int64_t list = 0; list < batch.lists; ++list) {
      const auto row = listed_row(words, draws.next(), batch.seen_by(token), batch.keys_of(batch.sequence_of(token)));
      for (const std::int64_t entry : row.entries) batch.indices.push_back(static_cast<std::int32_t>(entry));
      batch.counts.push_back(static_cast<std::int32_t>(row.count));
    }
  }
  batch.words = words_of(batch);
  return batch;
}

struct Laboratory
    : ListLaboratory<wavejit_attention_forward_arguments, WAVEJIT_ATTENTION_FORWARD, wavejit_attention_forward> {
  static const std::vector<ListDimension>& dimensions() {
    static const auto all = attention::program::list_dimensions("key-list-", "lists of keys: ", 8);
    return all;
  }
  static constexpr auto& draw = draw_key_lists;
};

}  // namespace

const Invariance& key_list_invariance() { return only<InvarianceOf<Laboratory>>(); }

}  // namespace wavejit::attention_forward::program
