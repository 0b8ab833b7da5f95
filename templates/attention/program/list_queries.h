// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What may change about a call with lists of keys without showing in a bit of O or LSE, of any attention that has such
// lists: the dimensions as data, the calls of some queries and heads, and what each query gets.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "templates/attention/program/invariance_rows.h"
#include "templates/attention/program/tensor_parts.h"
#include "tools/call_memory.h"
#include "tools/invariance/runner.h"
#include "wavejit/simgpu.h"
#include "wavejit/wavejit.h"

namespace wavejit::attention::program {

// A batch as changed calls go by it.
struct ListedQueries {
  std::int64_t sequences = 1;
  std::int64_t queries = 1;  // of a sequence
  std::int64_t query_heads = 1;
  std::int64_t kv_heads = 1;
  std::int64_t dim = 64;  // of O
  std::int64_t keys = 1;
  std::int64_t top_k = 1;
  tools::HalfType type = tools::HalfType::bf16;
  bool has_dense_walk = true;   // a dense kernel that computes the same
  bool slots_in_pages = false;  // slots may be those of pages

  std::int64_t tokens() const { return sequences * queries; }
  std::int64_t group() const { return query_heads / kv_heads; }
  AnswerShape answer_shape() const { return {.type = type, .heads = query_heads, .dim = dim}; }
};

// A query, and heads that share a kv head or all.
struct QueryPart {
  std::int64_t token = 0;
  std::int64_t head = 0;
  std::int64_t heads = 0;  // 0: the whole batch
};

struct ListChange {
  std::string text = {};
  std::int64_t page_size = 0;  // 0: dense
  bool slots = false;
  std::int64_t first_entries = 0;  // of slots: what stands behind them is a second list over a second cache
  std::vector<QueryPart> parts = {QueryPart{}};
  std::int32_t splits = 0;
  bool dense_walks = false;
  bool reversed = false;  // lists, without counts
  std::optional<wavejit_simgpu_schedule> schedule = std::nullopt;
};

using ListDimension = tools::DimensionOf<ListedQueries, ListChange>;
// "key-list-" and "lists of keys: " are put in front of the names and of what is said; of `one_in` pairs one is run.
std::vector<ListDimension> list_dimensions(const std::string& names, const std::string& says, std::uint64_t one_in);

// A call's queries, cut to one of them and some of its heads.
template <typename Call>
void cut_queries(const QueryPart& part, Call& call) {
  const Stretch token = {.first = part.token};
  const Stretch heads = {.first = part.head, .count = part.heads};
  for (wavejit_tensor* tensor : {&call.q, &call.o}) cut(*tensor, rows_first, token, heads);
  cut(call.lse, heads_first, token, heads);
  cut(call.modifiers.sink, heads_first.heads, heads);
}

// The entries of two lists that together name what one list names; the first list is cut after `first_entries`. Slots
// of the second cache are counted from its end.
struct TwoLists {
  std::vector<std::int32_t> first, second, first_counts, second_counts;
};
TwoLists cut_lists(const std::vector<std::int32_t>& slots, const std::vector<std::int32_t>& counts, std::int64_t top_k,
                   std::int64_t first_entries, std::int64_t all_slots);

template <typename Call>
void give_lists(Call& call, tools::CallMemory& memory, const TwoLists& two) {
  call.second_list.indices = memory.in(two.second);
  call.second_list.counts = memory.in(two.second_counts);
  call.second_list.top_k = static_cast<std::int64_t>(two.second.size() / two.second_counts.size());
  call.key_list.indices = memory.in(two.first);
  call.key_list.counts = memory.in(two.first_counts);
  call.key_list.top_k = static_cast<std::int64_t>(two.first.size() / two.first_counts.size());
}

// The key of a dense walk (1,024 keys a chunk) that stands for a list's entry, or −1: those of a list's chunk stand at
// the beginning of one, and what fills it up is a key whose score is −∞, which changes nothing
// (docs/canonical-arithmetic.md).
std::int64_t keys_of_dense_walk(std::int64_t top_k);
std::int64_t place_in_list(std::int64_t key);

// A laboratory of lists: what a family still says is `dimensions`, `draw` and `changed`. Its batch has `listed`.
template <typename Batch>
struct ListLaboratory {
  static std::vector<ListChange> changes(const ListDimension& dimension, const Batch& batch, tools::Draws& draws) {
    return dimension.changes(batch.listed(), draws);
  }
  static ListChange unchanged(const Batch& /*batch*/, const ListDimension& /*dimension*/) { return {}; }
  static std::optional<tools::FirstDifference> difference(const Batch& batch, const RowAnswer& before,
                                                          const RowAnswer& after, std::int64_t token) {
    auto first = first_difference(batch.listed().answer_shape(), before, after);
    if (first) first->token = token;
    return first;
  }
};

}  // namespace wavejit::attention::program
