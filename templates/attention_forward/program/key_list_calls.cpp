// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/program/key_list_calls.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#include "tools/call_memory.h"
#include "tools/empty_call.h"
#include "tools/stored_numbers.h"

namespace wavejit::attention_forward::program {
namespace {

using attention::program::ListChange;
using attention::program::QueryPart;
using tools::checked;
using tools::Result;

using Call = wavejit_attention_forward_arguments;
using Batch = KeyListBatch;
using Answers = std::vector<attention::program::RowAnswer>;

wavejit_dtype type_of(const Batch& batch) { return static_cast<wavejit_dtype>(tools::type_of(batch.type)); }

wavejit_tensor sinks_of(float* sinks, std::int64_t heads) {
  return wavejit_dense_tensor(sinks, WAVEJIT_FP32, 1, heads, 1, 1);
}

// A query alone stands on the diagonal where it stood.
void cut_rows(const Batch& batch, const QueryPart& part, Call& call) {
  attention::program::cut_queries(batch.listed(), part, call);
  if (call.modifiers.sink.data != nullptr)
    call.modifiers.sink = sinks_of(static_cast<float*>(call.modifiers.sink.data) + part.head, part.heads);
}

void cut(const Batch& batch, const QueryPart& part, Call& call) {
  if (part.heads == 0) return;
  const std::int64_t sequence = part.token / batch.queries;
  const std::int64_t row = part.token % batch.queries;
  const std::int64_t kv_head = part.head / batch.group();
  const bool all_heads = part.heads == batch.query_heads;
  const auto moved = [](wavejit_tensor& tensor, std::int64_t elements) {
    tensor.data = static_cast<std::uint16_t*>(tensor.data) + elements;
  };
  cut_rows(batch, part, call);
  for (wavejit_tensor* tensor : {&call.k, &call.v}) {
    if (!all_heads) {
      moved(*tensor, kv_head * tensor->strides[2]);
      tensor->sizes[2] = 1;
    }
    if (call.pages.block_table != nullptr || call.key_list.slots != 0) continue;
    moved(*tensor, sequence * tensor->strides[0]);
    tensor->sizes[0] = 1;
  }
  if (call.pages.block_table != nullptr) call.pages.block_table += sequence * call.pages.table_columns;
  if (call.sequences.key_lengths != nullptr) call.sequences.key_lengths += sequence;
  call.key_list.indices += part.token * batch.lists * call.key_list.top_k;
  call.key_list.counts += part.token * batch.lists;
  if (!all_heads && batch.lists > 1) {
    call.key_list.indices += kv_head * call.key_list.top_k;
    call.key_list.counts += kv_head;
    call.key_list.heads = 1;
  }
  if ((call.mask.bits & WAVEJIT_MASK_CAUSAL) == 0) return;
  call.mask.bits |= WAVEJIT_MASK_PREFIX;
  call.mask.causal_prefix = static_cast<std::int32_t>(batch.seen_by(sequence, row) - 1);
}

class Outputs {
 public:
  Outputs(tools::CallMemory& memory, const Batch& batch)
      : batch_(batch),
        o_(memory.out(static_cast<std::size_t>(batch.tokens() * batch.query_heads * batch.dim) * 2)),
        lse_(memory.out(static_cast<std::size_t>(batch.tokens() * batch.query_heads) * sizeof(float))) {}

  void describe(Call& call) const {
    call.o =
        wavejit_dense_tensor(o_, type_of(batch_), batch_.sequences, batch_.queries, batch_.query_heads, batch_.dim);
    call.lse = wavejit_dense_tensor(lse_, WAVEJIT_FP32, batch_.sequences, batch_.query_heads, batch_.queries, 1);
  }
  Result<Answers> read(wavejit_engine* engine, tools::CallMemory& memory) const {
    memory.keep(checked(wavejit_device_synchronize(engine)));
    const auto numbers = static_cast<std::size_t>(batch_.tokens() * batch_.query_heads);
    const auto o = memory.back<std::uint16_t>(o_, numbers * static_cast<std::size_t>(batch_.dim));
    const auto lse = memory.back<std::uint32_t>(lse_, numbers);
    if (!memory.good()) return std::unexpected(memory.good().error());
    return attention::program::by_query(batch_.listed(), o, lse);
  }

 private:
  const Batch& batch_;
  void* o_;
  void* lse_;
};

Call plain_call(tools::CallMemory& memory, const Batch& batch) {
  auto call = tools::empty_call<Call>(WAVEJIT_ATTENTION_FORWARD);
  call.q = wavejit_dense_tensor(memory.in(batch.q), type_of(batch), batch.sequences, batch.queries, batch.query_heads,
                                batch.dim);
  call.modifiers.softcap = batch.softcap;
  if (!batch.sink.empty()) call.modifiers.sink = sinks_of(memory.in(batch.sink), batch.query_heads);
  return call;
}

Result<Answers> with_lists(wavejit_engine* engine, const Batch& batch, const ListChange& change) {
  tools::CallMemory memory(engine);
  const Outputs outputs(memory, batch);
  Call call = plain_call(memory, batch);
  outputs.describe(call);
  const KeyListCache cache = cache_of(batch, change.page_size);
  const auto tensor = [&](const std::vector<std::uint16_t>& elements) {
    return wavejit_dense_tensor(memory.in(elements), type_of(batch), cache.pages, cache.page_size, batch.kv_heads,
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
    attention::program::give_lists(call, memory,
                                   attention::program::cut_lists(indices, counts, batch.top_k, change.first_entries,
                                                                 cache.pages * cache.page_size));
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
      call.pages.table_columns = cache.columns;
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
  const Outputs outputs(memory, batch);
  Call call = plain_call(memory, batch);
  outputs.describe(call);
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
      cut_rows(batch, {.token = token, .head = kv_head * batch.group(), .heads = batch.group()}, one);
      if (!memory.good()) return std::unexpected(memory.good().error());
      memory.keep(checked(wavejit_attention_forward(engine, &one, nullptr)));
    }
  }
  return outputs.read(engine, memory);
}

}  // namespace

Result<Answers> run_key_lists(wavejit_engine* engine, const KeyListBatch& batch, const ListChange& change) {
  return change.dense_walks ? dense_walks(engine, batch) : with_lists(engine, batch, change);
}

}  // namespace wavejit::attention_forward::program
