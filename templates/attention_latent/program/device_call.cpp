// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_latent/program/device_call.h"

#include "templates/attention/program/described_call.h"
#include "tools/empty_call.h"

namespace wavejit::attention_latent::program {

using attention::program::Experiment;
using attention::program::Placement;

wavejit_attention_latent_arguments call_of(const LatentArrays& arrays, const DevicePointers& memory) {
  const Experiment& of = arrays.experiment;
  const Placement queries = attention::program::queries_of(of);
  const Placement keys = attention::program::keys_of(of);
  const auto type = of.type == tools::HalfType::bf16 ? WAVEJIT_BF16 : WAVEJIT_FP16;
  const std::int64_t columns = arrays.apart ? arrays.latent() : arrays.latent() + arrays.rope();
  const std::int64_t key_batch = of.paged() ? arrays.pages : keys.batch;
  const std::int64_t key_rows = of.paged() ? of.page_size : keys.length;
  auto call = tools::empty_call<wavejit_attention_latent_arguments>(WAVEJIT_ATTENTION_LATENT);
  call.q = wavejit_dense_tensor(memory.q, type, queries.batch, queries.length, of.query_heads, columns);
  const auto key_type = of.has_bytes() ? static_cast<wavejit_dtype>(of.cache_dtype) : type;
  call.k = wavejit_dense_tensor(memory.k, key_type, key_batch, key_rows, 1, arrays.key_columns());
  call.k.strides[0] = arrays.key_stride(key_rows);
  if (arrays.apart) {
    call.q_rope =
        wavejit_dense_tensor(memory.q_rope, type, queries.batch, queries.length, of.query_heads, arrays.rope());
    call.k_rope = wavejit_dense_tensor(memory.k_rope, key_type, key_batch, key_rows, 1, arrays.rope());
  }
  call.o = wavejit_dense_tensor(memory.o, type, queries.batch, queries.length, of.query_heads, arrays.latent());
  if (memory.lse != nullptr)
    call.lse = wavejit_dense_tensor(memory.lse, WAVEJIT_FP32, queries.batch, of.query_heads, queries.length, 1);
  describe(of, memory, call);
  const attention::program::KeyLists& lists = arrays.lists;
  if (lists.top_k != 0) {
    call.key_list.indices = static_cast<const std::int32_t*>(memory.key_indices);
    call.key_list.counts = static_cast<const std::int32_t*>(memory.key_counts);
    call.key_list.top_k = lists.top_k;
    call.key_list.slots = lists.slots ? 1 : 0;
  }
  if (arrays.second_lists.top_k != 0) {
    call.second_k = call.k;
    call.second_k.data = memory.second_k;
    call.second_list.indices = static_cast<const std::int32_t*>(memory.second_indices);
    call.second_list.counts = static_cast<const std::int32_t*>(memory.second_counts);
    call.second_list.top_k = arrays.second_lists.top_k;
  }
  if (lists.slots) {
    call.sequences.key_lengths = nullptr;
    call.sequences.max_key_length = 0;
  } else if (of.paged()) {
    call.pages.block_table = static_cast<const std::int32_t*>(memory.table);
    call.pages.table_columns = arrays.table_columns;
    call.pages.table_starts = static_cast<const std::int32_t*>(memory.table_starts);
  }
  if (memory.k_scale != nullptr)
    call.scales.k_scale = wavejit_dense_tensor(memory.k_scale, WAVEJIT_FP32, std::ssize(arrays.k_scales), 1, 1, 1);
  if (arrays.row_scales != 0)
    call.scales.row_scales = arrays.row_scales == 64 ? WAVEJIT_EXPONENTS_BEHIND_ROWS : WAVEJIT_SCALES_IN_ROWS;
  if (memory.sinks != nullptr)
    call.modifiers.sink = wavejit_dense_tensor(memory.sinks, WAVEJIT_FP32, 1, of.query_heads, 1, 1);
  for (const attention::program::Sequence& sequence : attention::program::sequences_of(of))
    call.sequences.max_total_keys += sequence.keys;
  return call;
}

}  // namespace wavejit::attention_latent::program
