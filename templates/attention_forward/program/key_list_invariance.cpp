// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What may change about a call with lists of keys: calls over a drawn batch, whole or in parts, and what each query gets.
#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#include "templates/attention_forward/program/answers.h"
#include "templates/attention_forward/program/key_list_batch.h"
#include "tools/call_memory.h"
#include "tools/empty_call.h"
#include "tools/stored_numbers.h"

namespace wavejit::attention_forward::program {
namespace {

using attention::program::ListChange;
using attention::program::QueryPart;
using attention::program::RowOutputs;
using tools::checked;
using tools::Result;

using Call = wavejit_attention_forward_arguments;
using Batch = KeyListBatch;
using Answers = std::optional<std::vector<attention::program::RowAnswer>>;

wavejit_dtype type_of(const Batch& batch) { return static_cast<wavejit_dtype>(tools::type_of(batch.type)); }

void cut(const Batch& batch, const QueryPart& part, Call& call) {
  if (part.heads == 0) return;
  const std::int64_t sequence = part.token / batch.queries;
  const std::int64_t row = part.token % batch.queries;
  const std::int64_t kv_head = part.head / batch.group();
  const bool all_heads = part.heads == batch.query_heads;
  attention::program::cut_queries(part, call);
  for (wavejit_tensor* tensor : {&call.k, &call.v}) {
    if (!all_heads) attention::program::cut(*tensor, attention::program::rows_first.heads, {.first = kv_head});
    if (call.pages.block_table == nullptr && call.key_list.slots == 0)
      attention::program::cut(*tensor, 0, {.first = sequence});
  }
  if (call.pages.block_table != nullptr) call.pages.block_table += sequence * call.pages.table_row_stride;
  if (call.sequences.key_lengths != nullptr) call.sequences.key_lengths += sequence;
  call.key_list.indices += part.token * batch.lists * call.key_list.top_k;
  call.key_list.counts += part.token * batch.lists;
  if (!all_heads && batch.lists > 1) {
    call.key_list.indices += kv_head * call.key_list.top_k;
    call.key_list.counts += kv_head;
    call.key_list.heads = 1;
  }
  if ((call.mask.bits & WAVEJIT_MASK_CAUSAL) == 0) return;
  // A query alone stands on the diagonal where it stood.
  call.mask.bits |= WAVEJIT_MASK_PREFIX;
  call.mask.causal_prefix = static_cast<std::int32_t>(batch.seen_by(sequence, row) - 1);
}

// All but keys and lists.
Call plain_call(tools::CallMemory& memory, const Batch& batch, const RowOutputs& outputs) {
  auto call = tools::empty_call<Call>(WAVEJIT_ATTENTION_FORWARD);
  call.q = wavejit_dense_tensor(memory.in(batch.q), type_of(batch), batch.sequences, batch.queries, batch.query_heads,
                                batch.dim);
  call.modifiers.softcap = batch.softcap;
  if (!batch.sink.empty())
    call.modifiers.sink = wavejit_dense_tensor(memory.in(batch.sink), WAVEJIT_FP32, 1, batch.query_heads, 1, 1);
  outputs.describe(call, batch.sequences, batch.queries);
  return call;
}

Result<Answers> with_lists(wavejit_engine* engine, const Batch& batch, const ListChange& change) {
  tools::CallMemory memory(engine);
  const RowOutputs outputs(memory, batch.answer_shape(), batch.tokens());
  Call call = plain_call(memory, batch, outputs);
  const KeyListCache cache = cache_of(batch, change.page_size);
  const auto tensor = [&](const std::vector<std::uint16_t>& elements) {
    return wavejit_dense_tensor(memory.in(elements), type_of(batch), cache.outer, cache.inner, batch.kv_heads,
                                batch.dim);
  };
  call.k = tensor(cache.k);
  call.v = tensor(cache.v);
  call.key_list.top_k = batch.top_k;
  call.key_list.heads = batch.lists;
  call.split.splits = change.splits;
  std::vector<std::int32_t> indices = change.slots ? slots_of(batch, cache) : batch.indices;
  std::vector<std::int32_t> counts = batch.counts;
  if (change.reversed) {
    for (auto first = indices.begin(); first != indices.end(); first += batch.top_k)
      std::reverse(first, first + batch.top_k);
    std::ranges::fill(counts, static_cast<std::int32_t>(batch.top_k));
  }
  if (change.first_entries != 0) {
    const KeyListCache second = turned(batch, cache);
    call.second_k = tensor(second.k);
    call.second_v = tensor(second.v);
    attention::program::give_lists(
        call, memory, attention::program::cut_lists(indices, counts, batch.top_k, change.first_entries, cache.slots()));
  } else {
    call.key_list.indices = memory.in(indices);
    call.key_list.counts = memory.in(counts);
  }
  if (change.slots) {
    call.key_list.slots = 1;
  } else {
    if (batch.causal) call.mask.bits = WAVEJIT_MASK_CAUSAL;
    std::vector<std::int32_t> lengths = batch.key_lengths;
    if (!cache.table.empty()) {
      lengths.resize(static_cast<std::size_t>(batch.sequences), static_cast<std::int32_t>(batch.keys));
      call.pages.block_table = memory.in(cache.table);
      call.pages.table_columns = cache.table_columns;
      call.pages.table_row_stride = cache.table_row_stride;
      call.sequences.max_key_length = batch.keys;
    }
    call.sequences.key_lengths = memory.in(lengths);
  }
  if (!memory.good()) return std::unexpected(memory.good().error());
  for (const QueryPart& part : change.parts) {
    Call one = call;
    cut(batch, part, one);
    memory.keep(checked(wavejit_attention_forward(engine, &one, nullptr)));
  }
  return outputs.read(engine, memory);
}

// The dense kernels over a list's keys in its order. A key whose score is −∞ has that in the last column, where queries
// have 2 and other keys 0.
Result<Answers> dense_walks(wavejit_engine* engine, const Batch& batch) {
  const std::int64_t keys = attention::program::keys_of_dense_walk(batch.top_k);
  const std::uint16_t hidden = tools::encode(batch.type, -std::numeric_limits<double>::infinity());
  tools::CallMemory memory(engine);
  const RowOutputs outputs(memory, batch.answer_shape(), batch.tokens());
  Call call = plain_call(memory, batch, outputs);
  for (std::int64_t token = 0; token < batch.tokens(); ++token) {
    const std::int64_t sequence = token / batch.queries;
    const std::int64_t sees = batch.seen_by(sequence, token % batch.queries);
    for (std::int64_t kv_head = 0; kv_head < batch.kv_heads; ++kv_head) {
      const std::int64_t list = (token * batch.lists) + (batch.lists > 1 ? kv_head : 0);
      const std::int64_t count = batch.counts[static_cast<std::size_t>(list)];
      std::vector<std::uint16_t> k(static_cast<std::size_t>(keys * batch.dim), 0);
      std::vector<std::uint16_t> v = k;
      for (std::int64_t key = 0; key < keys; ++key) {
        const std::int64_t place = attention::program::place_in_list(key);
        const std::int64_t entry =
            place >= 0 && place < count ? batch.indices[static_cast<std::size_t>((list * batch.top_k) + place)] : -1;
        if (entry < 0 || entry >= sees) {
          k[static_cast<std::size_t>(((key + 1) * batch.dim) - 1)] = hidden;
          continue;
        }
        const std::int64_t row = ((((sequence * batch.keys) + entry) * batch.kv_heads) + kv_head) * batch.dim;
        std::copy_n(batch.k.begin() + row, batch.dim, k.begin() + (key * batch.dim));
        std::copy_n(batch.v.begin() + row, batch.dim, v.begin() + (key * batch.dim));
      }
      Call one = call;
      one.k = wavejit_dense_tensor(memory.in(k), type_of(batch), 1, keys, 1, batch.dim);
      one.v = wavejit_dense_tensor(memory.in(v), type_of(batch), 1, keys, 1, batch.dim);
      attention::program::cut_queries({.token = token, .head = kv_head * batch.group(), .heads = batch.group()}, one);
      if (!memory.good()) return std::unexpected(memory.good().error());
      memory.keep(checked(wavejit_attention_forward(engine, &one, nullptr)));
    }
  }
  return outputs.read(engine, memory);
}

struct Laboratory : attention::program::ListLaboratory<Batch> {
  static const std::vector<attention::program::ListDimension>& dimensions() {
    static const auto all = attention::program::list_dimensions("key-list-", "lists of keys: ", 8);
    return all;
  }
  static Batch draw(const tools::InvarianceRequest& request, const attention::program::ListDimension&,
                    wavejit_engine* /*engine*/) {
    return draw_key_lists(request);
  }
  static Result<Answers> changed(wavejit_engine* engine, const Batch& batch, const ListChange& change) {
    return change.dense_walks ? dense_walks(engine, batch) : with_lists(engine, batch, change);
  }
};

}  // namespace

const tools::Invariance& key_list_invariance() { return tools::only<tools::InvarianceOf<Laboratory>>(); }

}  // namespace wavejit::attention_forward::program
