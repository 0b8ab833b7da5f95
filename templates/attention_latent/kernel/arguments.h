// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The arguments of both kernels, byte for byte as they read them. Strides are in bytes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "templates/attention/kernel/arguments.h"
#include "templates/attention/kernel/key_list_arguments.h"
#include "templates/attention/kernel/page_arguments.h"

namespace wavejit::attention_latent {

struct TensorArgument {
  std::uint64_t pointer = 0;
  std::uint64_t batch_stride = 0;  // of keys in pages: from page to page
  std::uint64_t head_stride = 0;
  std::uint32_t row_stride = 0;
  std::uint32_t reserved = 0;
};

// The scale of a cache of 8 bits, which has one: f32 in device memory, for all sequences (a stride of 0) or for each.
struct CacheScale {
  std::uint64_t numbers = 0;  // null: 1
  std::uint64_t batch_stride = 0;
};
struct CacheScales {
  CacheScale of_scores;  // of the combine kernel none where scores are powers of two already
  CacheScale of_values;
  float none = 1;  // what is read where there are no numbers, so that nothing branches
  std::uint32_t reserved = 0;
};

struct Arguments {
  // Always in two pieces, wherever they stand: the columns that are V's, and those behind them.
  TensorArgument q;
  TensorArgument q_rope;
  TensorArgument k;
  TensorArgument k_rope;
  TensorArgument o;
  std::uint64_t lse = 0;  // f32, the rows of a head side by side; null: not wanted
  std::uint64_t lse_batch_stride = 0;
  std::uint64_t lse_head_stride = 0;
  std::uint64_t sink = 0;       // f32 [heads], natural units; null: none
  std::uint64_t workspace = 0;  // parts of chunks; read and written by kernels whose spec has `parts`
  attention::SequenceArguments sequences;
  attention::ScoreArguments scores;
  attention::PageArguments pages;  // of keys in pages
  std::uint32_t batch = 0;         // sequences of this launch
  std::uint32_t query_length = 0;  // of the longest sequence, ≥ 1
  std::uint32_t key_length = 0;    // the same, ≥ 0
  // Row q stands at key q + causal_offset + ((key length − query length) & bottom_right_mask), its diagonal.
  std::int32_t causal_offset = 0;
  std::uint32_t bottom_right_mask = 0;
  std::uint32_t heads = 1;
  std::uint32_t head_multiplier = 0;  // a division by `heads` (emit/integers.h)
  std::uint32_t run_chunks = 0;       // chunks that a workgroup walks, of kernels with `parts`
  float scale_log2e = 0;              // softmax scale · log2 e; may be 0 or negative
  std::uint32_t causal = 0;           // of the combine kernel: whether the diagonal hides keys
  attention::KeyListArguments list;   // kernels without lists have none of it
  CacheScales cache_scales;           // only kernels of caches of 8 bits, and those with `merged`, have them
  // For kernels with `merged`: counters of the workgroups that have arrived, one for each wave, [tile of rows][x of the
  // grid][wave]. Zeros before a launch and behind it.
  std::uint64_t arrivals = 0;
};

static_assert(sizeof(TensorArgument) == 32);
static_assert(offsetof(Arguments, cache_scales) == 440);
constexpr std::size_t argument_bytes_of(bool listed, bool scaled, bool merged = false) {
  if (merged) return sizeof(Arguments);
  if (scaled) return offsetof(Arguments, arrivals);
  return listed ? offsetof(Arguments, cache_scales) : offsetof(Arguments, list);
}

constexpr attention::TensorFields tensor_fields(std::size_t offset) {
  return {.pointer = offset + offsetof(TensorArgument, pointer),
          .batch_stride = offset + offsetof(TensorArgument, batch_stride),
          .head_stride = offset + offsetof(TensorArgument, head_stride),
          .row_stride = offset + offsetof(TensorArgument, row_stride)};
}
inline constexpr attention::LengthFields length_fields = attention::length_fields_of<Arguments>;
inline constexpr std::size_t score_scale_at = offsetof(Arguments, cache_scales) + offsetof(CacheScales, of_scores);
inline constexpr std::size_t value_scale_at = offsetof(Arguments, cache_scales) + offsetof(CacheScales, of_values);
inline constexpr std::size_t query_starts_at =
    offsetof(Arguments, sequences) + offsetof(attention::SequenceArguments, query_starts);
inline constexpr attention::DiagonalFields diagonal_fields = attention::diagonal_fields_of<Arguments>;
inline constexpr attention::ScoreFields score_fields = attention::score_fields_of<Arguments>;

// Workgroups of the walk: x = sequence, y = tile of rows (heaviest causal ones first), z = run of chunks. So the tiles
// of one sequence, which share its keys, are as many workgroups apart as there are sequences: on one die where that is
// a multiple of the dies (call/call.cpp rounds x up to it where there are as many).
// Of listed keys: x = query of all sequences (batch · query_length), y = tile of its heads, z = run of chunks.
// Of the combine kernel: x = row of its sequence, z = sequence. A row is one head of one query.

}  // namespace wavejit::attention_latent
