// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Calls of every family that its check takes, one for each kind of tensor and list that it has. Their memory is
// nowhere: for what is asked of a call before it is launched. `e4m3`: the target's own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "wavejit/wavejit.h"

namespace wavejit::tests {

// NOLINTNEXTLINE(performance-no-int-to-ptr)
inline void* place(std::uint64_t number) { return reinterpret_cast<void*>(number << 36U); }
inline const std::int32_t* numbers(std::uint64_t number) { return static_cast<const std::int32_t*>(place(number)); }
inline wavejit_tensor tensor(std::uint64_t number, wavejit_dtype dtype, std::int64_t batch, std::int64_t length,
                             std::int64_t heads, std::int64_t dims) {
  return wavejit_dense_tensor(place(number), dtype, batch, length, heads, dims);
}
inline wavejit_tensor row_numbers(std::uint64_t number, std::int64_t batch, std::int64_t heads, std::int64_t rows) {
  return tensor(number, WAVEJIT_FP32, batch, heads, rows, 1);
}

using Forward = wavejit_attention_forward_arguments;
using Latent = wavejit_attention_latent_arguments;
using Backward = wavejit_attention_backward_arguments;
using Softmax = wavejit_softmax_lse_arguments;
using Indexer = wavejit_sparse_indexer_arguments;
using Append = wavejit_cache_append_arguments;
using Merge = wavejit_attention_merge_arguments;

template <typename Arguments>
inline constexpr std::int32_t family_of = WAVEJIT_FAMILY_NONE;
template <>
inline constexpr std::int32_t family_of<Forward> = WAVEJIT_ATTENTION_FORWARD;
template <>
inline constexpr std::int32_t family_of<Latent> = WAVEJIT_ATTENTION_LATENT;
template <>
inline constexpr std::int32_t family_of<Backward> = WAVEJIT_ATTENTION_BACKWARD;
template <>
inline constexpr std::int32_t family_of<Softmax> = WAVEJIT_SOFTMAX_LSE;
template <>
inline constexpr std::int32_t family_of<Indexer> = WAVEJIT_SPARSE_INDEXER;
template <>
inline constexpr std::int32_t family_of<Append> = WAVEJIT_CACHE_APPEND;
template <>
inline constexpr std::int32_t family_of<Merge> = WAVEJIT_ATTENTION_MERGE;

template <typename Arguments>
std::vector<Arguments> with_heads(std::vector<Arguments> calls) {
  for (Arguments& call : calls) {
    call.head.size = sizeof call;
    call.head.family = family_of<Arguments>;
  }
  return calls;
}

inline std::vector<Forward> forward_calls(wavejit_dtype e4m3) {
  Forward dense{};
  dense.q = tensor(1, WAVEJIT_BF16, 2, 255, 8, 128);
  dense.k = tensor(2, WAVEJIT_BF16, 2, 512, 2, 128);
  dense.v = tensor(3, WAVEJIT_BF16, 2, 512, 2, 128);
  dense.o = tensor(4, WAVEJIT_BF16, 2, 255, 8, 128);
  dense.lse = row_numbers(5, 2, 8, 255);
  Forward paged{};
  paged.q = tensor(1, WAVEJIT_BF16, 61, 1, 64, 128);
  paged.k = tensor(2, e4m3, 4096, 16, 8, 128);
  paged.v = tensor(3, e4m3, 4096, 16, 8, 128);
  paged.o = tensor(4, WAVEJIT_BF16, 61, 1, 64, 128);
  paged.pages.block_table = numbers(6);
  paged.pages.table_columns = 65;
  paged.sequences.key_lengths = numbers(7);
  paged.sequences.max_key_length = 1024;
  paged.scales.k_scale = tensor(8, WAVEJIT_FP32, 1, 1, 8, 1);
  paged.scales.v_scale = tensor(9, WAVEJIT_FP32, 61, 1, 8, 1);
  Forward tokens = paged;
  tokens.scales.token_scales = 1;
  tokens.scales.k_scale = tensor(8, WAVEJIT_FP32, 4096, 16, 8, 1);
  tokens.scales.v_scale = tensor(9, WAVEJIT_FP32, 4096, 16, 8, 1);
  Forward vectorised = paged;
  vectorised.k.dtype = vectorised.v.dtype = WAVEJIT_BF16;
  vectorised.scales.k_scale = vectorised.scales.v_scale = {};
  vectorised.pages.page_layout = WAVEJIT_PAGES_VECTORISED;
  vectorised.k.strides[2] = vectorised.v.strides[2] = std::int64_t{16} * 128;
  vectorised.k.strides[1] = 8;
  vectorised.v.strides[1] = 1;
  vectorised.v.strides[3] = 16;
  Forward modified = dense;
  modified.modifiers.bias = tensor(10, WAVEJIT_BF16, 2, 8, 255, 512);
  modified.modifiers.alibi = tensor(11, WAVEJIT_FP32, 1, 8, 1, 1);
  modified.modifiers.sink = tensor(12, WAVEJIT_FP32, 1, 8, 1, 1);
  modified.modifiers.softcap = 5;
  Forward masked = dense;
  masked.modifiers.bool_mask = tensor(10, WAVEJIT_INT8, 2, 8, 255, 512);
  Forward few_rows = masked;
  few_rows.q = few_rows.o = tensor(1, WAVEJIT_BF16, 2, 7, 8, 128);
  few_rows.o.data = place(4);
  few_rows.lse = row_numbers(5, 2, 8, 7);
  few_rows.modifiers.bool_mask = tensor(10, WAVEJIT_INT8, 2, 1, 7, 512);
  Forward blocks = dense;
  blocks.blocks.list_counts = numbers(13);
  blocks.blocks.list_indices = numbers(14);
  blocks.blocks.list_row_blocks = 4;
  blocks.blocks.list_capacity = 9;
  blocks.blocks.list_rows = blocks.blocks.list_keys = 64;
  blocks.blocks.list_batches = 2;
  blocks.blocks.list_heads = 8;
  Forward listed = dense;
  listed.key_list.indices = numbers(15);
  listed.key_list.top_k = 70;
  Forward slots = listed;
  slots.k = tensor(2, WAVEJIT_BF16, 33, 16, 2, 128);
  slots.v = tensor(3, WAVEJIT_BF16, 33, 16, 2, 128);
  slots.key_list.slots = 1;
  Forward two_lists = slots;
  two_lists.second_k = tensor(16, WAVEJIT_BF16, 17, 16, 2, 128);
  two_lists.second_v = tensor(17, WAVEJIT_BF16, 17, 16, 2, 128);
  two_lists.second_list.indices = numbers(18);
  two_lists.second_list.top_k = 34;
  Forward packed = dense;
  packed.q = packed.o = tensor(1, WAVEJIT_BF16, 1, 510, 8, 128);
  packed.o.data = place(4);
  packed.lse = row_numbers(5, 1, 8, 510);
  packed.sequences.query_starts = numbers(19);
  packed.sequences.count = 2;
  packed.sequences.max_query_length = 300;
  Forward integers = dense;
  integers.q.dtype = integers.k.dtype = WAVEJIT_INT8;
  integers.scales.q_scale = tensor(20, WAVEJIT_FP32, 2, 255, 8, 1);
  integers.scales.k_scale = tensor(21, WAVEJIT_FP32, 2, 1, 2, 1);
  Forward split = paged;
  split.split.workspace = place(22);
  split.split.workspace_bytes = std::size_t{1} << 28U;
  split.sequences.max_key_length = std::int64_t{1} << 18U;
  split.pages.table_columns = 1 << 14U;
  return with_heads(std::vector{dense, paged, tokens, vectorised, modified, masked, few_rows, blocks, listed, slots,
                                two_lists, packed, integers, split});
}

inline std::vector<Latent> latent_calls(wavejit_dtype e4m3) {
  Latent paged{};
  paged.q = tensor(1, WAVEJIT_BF16, 61, 1, 16, 576);
  paged.k = tensor(2, WAVEJIT_BF16, 255, 64, 1, 576);
  paged.o = tensor(3, WAVEJIT_BF16, 61, 1, 16, 512);
  paged.lse = row_numbers(4, 61, 16, 1);
  paged.pages.block_table = numbers(5);
  paged.pages.table_columns = 128;
  paged.sequences.key_lengths = numbers(6);
  paged.sequences.max_key_length = 8192;
  paged.modifiers.scale = 0.07F;
  Latent apart = paged;
  apart.q = tensor(1, WAVEJIT_BF16, 61, 1, 16, 512);
  apart.q_rope = tensor(7, WAVEJIT_BF16, 61, 1, 16, 64);
  apart.k = tensor(2, WAVEJIT_BF16, 255, 64, 1, 512);
  apart.k_rope = tensor(8, WAVEJIT_BF16, 255, 64, 1, 64);
  Latent narrow = paged;
  narrow.k.dtype = e4m3;
  narrow.scales.k_scale = tensor(9, WAVEJIT_FP32, 61, 1, 1, 1);
  narrow.modifiers.sink = tensor(10, WAVEJIT_FP32, 1, 16, 1, 1);
  Latent listed = paged;
  listed.key_list.indices = numbers(11);
  listed.key_list.top_k = 2048;
  Latent slots = listed;
  slots.pages.block_table = nullptr;
  slots.sequences.key_lengths = nullptr;
  slots.pages.table_columns = slots.sequences.max_key_length = 0;
  slots.key_list.slots = 1;
  Latent two_lists = slots;
  two_lists.second_k = tensor(12, WAVEJIT_BF16, 254, 64, 1, 576);
  two_lists.second_list.indices = numbers(13);
  two_lists.second_list.top_k = 129;
  Latent scaled = slots;
  scaled.k = tensor(2, e4m3, 255, 64, 1, 656);
  Latent exponents = two_lists;
  exponents.q = tensor(1, WAVEJIT_BF16, 61, 1, 16, 512);
  exponents.k = tensor(2, e4m3, 255, 64, 1, 584);
  exponents.second_k = tensor(12, e4m3, 254, 64, 1, 584);
  exponents.scales.row_scales = WAVEJIT_EXPONENTS_BEHIND_ROWS;
  Latent dense = paged;
  dense.pages.block_table = nullptr;
  dense.sequences.key_lengths = nullptr;
  dense.pages.table_columns = dense.sequences.max_key_length = 0;
  dense.k = tensor(2, WAVEJIT_BF16, 61, 4097, 1, 576);
  return with_heads(std::vector{paged, apart, narrow, listed, slots, two_lists, scaled, exponents, dense});
}

inline std::vector<Backward> backward_calls() {
  Backward dense{};
  const auto queries = [](std::uint64_t number) { return tensor(number, WAVEJIT_BF16, 2, 255, 8, 128); };
  const auto keys = [](std::uint64_t number) { return tensor(number, WAVEJIT_BF16, 2, 512, 4, 128); };
  dense.q = queries(1);
  dense.k = keys(2);
  dense.v = keys(3);
  dense.o = queries(4);
  dense.d_o = queries(5);
  dense.lse = row_numbers(6, 2, 8, 255);
  dense.d_lse = row_numbers(7, 2, 8, 255);
  dense.dq = queries(8);
  dense.dk = keys(9);
  dense.dv = keys(10);
  Backward modified = dense;
  modified.d_lse = {};
  modified.modifiers.bias = tensor(11, WAVEJIT_BF16, 1, 8, 255, 512);
  modified.d_bias = tensor(12, WAVEJIT_FP32, 1, 8, 255, 512);
  modified.modifiers.sink = tensor(13, WAVEJIT_FP32, 1, 8, 1, 1);
  modified.d_sink = tensor(14, WAVEJIT_FP32, 2, 8, 1, 1);
  modified.modifiers.alibi = tensor(15, WAVEJIT_FP32, 1, 8, 1, 1);
  Backward delta = dense;
  delta.o = {};
  delta.delta = row_numbers(16, 2, 8, 255);
  delta.split.workspace = place(17);
  delta.split.workspace_bytes = std::size_t{1} << 26U;
  return with_heads(std::vector{dense, modified, delta});
}

inline std::vector<Softmax> softmax_calls() {
  Softmax call{};
  call.scores = tensor(1, WAVEJIT_FP32, 3, 8, 100, 1000);
  call.weights = tensor(2, WAVEJIT_BF16, 3, 8, 100, 1000);
  call.lse = row_numbers(3, 3, 8, 100);
  call.key_lengths = numbers(4);
  return with_heads(std::vector{call});
}

inline std::vector<Indexer> indexer_calls() {
  Indexer paged{};
  paged.queries = tensor(1, WAVEJIT_BF16, 47, 3, 64, 128);
  paged.keys = tensor(2, WAVEJIT_BF16, 8192, 16, 1, 128);
  paged.weights = tensor(3, WAVEJIT_FP32, 47, 3, 64, 1);
  paged.key_scales = tensor(4, WAVEJIT_FP32, 8192, 16, 1, 1);
  paged.pages.block_table = numbers(5);
  paged.pages.table_columns = 2047;
  paged.key_lengths = numbers(6);
  paged.max_key_length = 30000;
  paged.indices = static_cast<std::int32_t*>(place(7));
  paged.top_k = 2048;
  Indexer dense = paged;
  dense.pages.block_table = nullptr;
  dense.pages.table_columns = dense.max_key_length = 0;
  dense.keys = tensor(2, WAVEJIT_BF16, 47, 5000, 1, 128);
  dense.key_scales = tensor(4, WAVEJIT_FP32, 47, 5000, 1, 1);
  dense.scores = tensor(8, WAVEJIT_FP32, 47, 3, 1, 5000);
  Indexer scores = dense;
  scores.queries = scores.keys = scores.weights = scores.key_scales = {};
  return with_heads(std::vector{paged, dense, scores});
}

inline std::vector<Append> append_calls(wavejit_dtype e4m3) {
  Append plain{};
  plain.k = tensor(1, WAVEJIT_BF16, 2, 35, 8, 128);
  plain.v = tensor(2, WAVEJIT_BF16, 2, 35, 8, 256);
  plain.k_cache = tensor(3, WAVEJIT_BF16, 4096, 16, 8, 128);
  plain.v_cache = tensor(4, WAVEJIT_BF16, 4096, 16, 8, 256);
  plain.slots = place(5);
  Append rotary = plain;
  rotary.rotary = WAVEJIT_ROTARY_HALVES;
  rotary.rotary_dim = 64;
  rotary.cos = tensor(6, WAVEJIT_FP32, 1, 4095, 1, 32);
  rotary.sin = tensor(7, WAVEJIT_FP32, 1, 4095, 1, 32);
  rotary.positions = place(8);
  rotary.q = tensor(9, WAVEJIT_BF16, 2, 35, 66, 72);
  rotary.q_out = tensor(10, WAVEJIT_BF16, 2, 35, 66, 72);
  Append narrow = plain;
  narrow.k_cache.dtype = narrow.v_cache.dtype = e4m3;
  narrow.scales.k_scale = tensor(11, WAVEJIT_FP32, 1, 1, 8, 1);
  narrow.scales.v_scale = tensor(12, WAVEJIT_FP32, 1, 1, 8, 1);
  Append tokens = narrow;
  tokens.scales.token_scales = 1;
  tokens.scales.k_scale = tensor(11, WAVEJIT_FP32, 4096, 16, 8, 1);
  tokens.scales.v_scale = tensor(12, WAVEJIT_FP32, 4096, 16, 8, 1);
  Append latent = plain;
  latent.k = tensor(1, WAVEJIT_BF16, 2, 35, 1, 64);
  latent.v = tensor(2, WAVEJIT_BF16, 2, 35, 1, 512);
  latent.k_cache = tensor(3, e4m3, 255, 48, 1, 656);
  latent.v_cache = {};
  return with_heads(std::vector{plain, rotary, narrow, tokens, latent});
}

inline std::vector<Merge> merge_calls() {
  Merge two{};
  for (std::uint64_t part = 0; part < 2; ++part) {
    two.parts[part].o = tensor(1 + part, WAVEJIT_BF16, 3, 70, 64, 128);
    two.parts[part].lse = row_numbers(3 + part, 3, 64, 70);
  }
  two.part_count = 2;
  two.o = tensor(5, WAVEJIT_BF16, 3, 70, 64, 128);
  two.lse = row_numbers(6, 3, 64, 70);
  Merge many = two;
  many.parts[0].count = 9;
  many.parts[0].o_stride = std::int64_t{3} * 70 * 64 * 128;
  many.parts[0].lse_stride = std::int64_t{3} * 70 * 64;
  return with_heads(std::vector{two, many});
}

}  // namespace wavejit::tests
