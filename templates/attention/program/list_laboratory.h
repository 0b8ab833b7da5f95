// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Calls with lists of keys over a drawn batch, whole or in parts, for `invariance` of any attention that has such lists:
// keys dense or in pages, lists of numbers or of slots, in one list or in two over two caches; and the dense kernels'
// walk over a list's keys in its order.
//
// Dense chunks have 1,024 keys. So the keys of a list's chunk stand at the beginning of one, and what fills it up is a
// key whose score is −∞, as is a hole of the list: it has −∞ in the last column, where queries have 2 and other keys 0.
// Such a key changes nothing of a row (docs/canonical-arithmetic.md).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "templates/attention/program/list_queries.h"
#include "templates/attention/program/placed_keys.h"
#include "templates/attention/program/tensor_parts.h"
#include "tools/call_memory.h"
#include "tools/empty_call.h"

namespace wavejit::attention::program {

// What both walks must have: the last column of queries and keys.
void clear_last_column(ListedQueries& batch);

// Keys and values that are one row behind the other, [outer][inner][kv head][dim]; free slots are NaN.
struct ListedKeys : PlacedKeys {
  std::vector<std::uint16_t> k, v;

  std::int64_t slots() const { return outer * inner; }
  std::int64_t slot_of(std::int64_t sequence, std::int64_t key) const;
};
// page_size 0: dense. `turned`: slots from the last to the first, as a second cache has them.
ListedKeys keys_in_memory(const ListedQueries& batch, std::int64_t page_size);
ListedKeys turned(const ListedQueries& batch, const ListedKeys& keys);
// The keys of a dense walk over the list of a query and of a kv head.
ListedKeys walked_keys(const ListedQueries& batch, std::int64_t token, std::int64_t kv_head);

// A call's lists: by numbers or by slots of these keys, where what a row does not see has none; from their end, without
// counts; or cut behind `first_entries` into two that together name the same. Slots of the second cache are counted from
// its end.
struct CallLists {
  std::vector<std::int32_t> indices, counts, second_indices, second_counts;
};
CallLists call_lists(const ListedQueries& batch, const ListedKeys& keys, const ListChange& change);

// A laboratory of lists: what a family still says is `dimensions`, `draw` and its call.
template <typename Call, wavejit_family family, auto run_call>
class ListLaboratory {
 public:
  using Answers = std::optional<std::vector<RowAnswer>>;

  static ListChange unchanged(const ListedQueries& /*batch*/) { return {}; }
  static tools::Result<Answers> changed(wavejit_engine* engine, const ListedQueries& batch, const ListChange& change) {
    tools::CallMemory memory(engine);
    const RowOutputs outputs(memory, batch.answer_shape(), batch.tokens());
    auto call = tools::empty_call<Call>(family);
    call.q = wavejit_dense_tensor(memory.in(batch.q), type_of(batch), batch.sequences, batch.queries, batch.query_heads,
                                  batch.dim);
    call.modifiers.scale = batch.scale;
    call.modifiers.softcap = batch.softcap;
    call.modifiers.sink = head_numbers(memory, batch.sink);
    outputs.describe(call, batch.sequences, batch.queries);
    if (change.dense_walks)
      walk_lists(engine, batch, call, memory);
    else
      read_lists(engine, batch, change, call, memory);
    return outputs.read(engine, memory);
  }
  static std::optional<tools::FirstDifference> difference(const ListedQueries& batch, const RowAnswer& before,
                                                          const RowAnswer& after, std::int64_t token) {
    auto first = first_difference(batch.answer_shape(), before, after);
    if (first) first->token = token;
    return first;
  }

 private:
  static wavejit_dtype type_of(const ListedQueries& batch) {
    return static_cast<wavejit_dtype>(tools::type_of(batch.type));
  }
  static void launch(wavejit_engine* engine, const Call& call, tools::CallMemory& memory) {
    if (memory.good()) memory.keep(tools::checked(run_call(engine, &call, nullptr)));
  }

  static void give_keys(const ListedQueries& batch, const ListedKeys& keys, std::int64_t kv_heads, Call& call,
                        tools::CallMemory& memory) {
    call.k = wavejit_dense_tensor(memory.in(keys.k), type_of(batch), keys.outer, keys.inner, kv_heads, batch.dim);
    if constexpr (requires { call.v; })
      call.v = wavejit_dense_tensor(memory.in(keys.v), type_of(batch), keys.outer, keys.inner, kv_heads, batch.dim_v);
  }

  // A call's queries, cut to one of them and some of its heads.
  static void cut_queries(const QueryPart& part, Call& call) {
    const Stretch token = {.first = part.token};
    const Stretch heads = {.first = part.head, .count = part.heads};
    for (wavejit_tensor* tensor : {&call.q, &call.o}) cut(*tensor, rows_first, token, heads);
    cut(call.lse, heads_first, token, heads);
    cut(call.modifiers.sink, heads_first.heads, heads);
  }

  static void cut_call(const ListedQueries& batch, const QueryPart& part, Call& call) {
    if (part.heads == 0) return;
    const std::int64_t sequence = batch.sequence_of(part.token);
    const std::int64_t kv_head = part.head / batch.group();
    const bool all_heads = part.heads == batch.query_heads;
    cut_queries(part, call);
    const auto cut_keys = [&](wavejit_tensor& tensor) {
      if (!all_heads) cut(tensor, rows_first.heads, {.first = kv_head});
      if (call.pages.block_table == nullptr && call.key_list.slots == 0) cut(tensor, 0, {.first = sequence});
    };
    cut_keys(call.k);
    if constexpr (requires { call.v; }) cut_keys(call.v);
    if (call.pages.block_table != nullptr) call.pages.block_table += sequence * call.pages.table_row_stride;
    if (call.sequences.key_lengths != nullptr) call.sequences.key_lengths += sequence;
    const std::int64_t list = (part.token * batch.lists) + (all_heads || batch.lists == 1 ? 0 : kv_head);
    call.key_list.indices += list * call.key_list.top_k;
    if (call.key_list.counts != nullptr) call.key_list.counts += list;
    if (!all_heads) call.key_list.heads = 1;
    if ((call.mask.bits & WAVEJIT_MASK_CAUSAL) == 0) return;
    // A query alone stands on the diagonal where it stood.
    call.mask.bits |= WAVEJIT_MASK_PREFIX;
    call.mask.causal_prefix = static_cast<std::int32_t>(batch.seen_by(part.token) - 1);
  }

  static void read_lists(wavejit_engine* engine, const ListedQueries& batch, const ListChange& change, Call& call,
                         tools::CallMemory& memory) {
    const ListedKeys keys = keys_in_memory(batch, change.page_size);
    const CallLists lists = call_lists(batch, keys, change);
    if (change.first_entries != 0) {
      give_keys(batch, turned(batch, keys), batch.kv_heads, call, memory);
      call.second_k = call.k;
      if constexpr (requires { call.v; }) call.second_v = call.v;
      call.second_list.indices = memory.in(lists.second_indices);
      call.second_list.counts = memory.in(lists.second_counts);
      call.second_list.top_k = batch.top_k - change.first_entries;
    }
    give_keys(batch, keys, batch.kv_heads, call, memory);
    call.key_list.indices = memory.in(lists.indices);
    call.key_list.counts = memory.in(lists.counts);
    call.key_list.top_k = change.first_entries != 0 ? change.first_entries : batch.top_k;
    call.key_list.heads = batch.lists;
    call.key_list.slots = change.slots ? 1 : 0;
    call.split.splits = change.splits;
    if (!change.slots) {
      if (batch.causal) call.mask.bits = WAVEJIT_MASK_CAUSAL;
      std::vector<std::int32_t> lengths = batch.key_lengths;
      if (change.page_size != 0) {
        lengths.resize(static_cast<std::size_t>(batch.sequences), static_cast<std::int32_t>(batch.keys));
        call.pages.block_table = memory.in(keys.table);
        call.pages.table_columns = keys.table_columns;
        call.pages.table_row_stride = keys.table_row_stride;
        call.sequences.max_key_length = batch.keys;
      }
      call.sequences.key_lengths = memory.in(lengths);
    }
    for (const QueryPart& part : change.parts) {
      Call one = call;
      cut_call(batch, part, one);
      launch(engine, one, memory);
    }
  }

  static void walk_lists(wavejit_engine* engine, const ListedQueries& batch, const Call& call,
                         tools::CallMemory& memory) {
    for (std::int64_t token = 0; token < batch.tokens(); ++token)
      for (std::int64_t kv_head = 0; kv_head < batch.kv_heads; ++kv_head) {
        Call one = call;
        give_keys(batch, walked_keys(batch, token, kv_head), 1, one, memory);
        cut_queries({.token = token, .head = kv_head * batch.group(), .heads = batch.group()}, one);
        launch(engine, one, memory);
      }
  }
};

}  // namespace wavejit::attention::program
