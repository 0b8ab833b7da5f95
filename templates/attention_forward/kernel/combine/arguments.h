// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The combine kernel's arguments, byte for byte: the runtime fills this struct and the kernel reads fields by offset.
// Strides are in bytes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "templates/attention/kernel/cache_scale_arguments.h"
#include "templates/attention/kernel/key_list_arguments.h"
#include "templates/attention/kernel/output_scale.h"

namespace wavejit::attention_combine {

struct Arguments {
  std::uint64_t workspace = 0;
  std::uint64_t o = 0;
  std::uint64_t o_batch_stride = 0;
  std::uint64_t o_head_stride = 0;
  std::uint64_t lse = 0;  // f32, rows next to each other; null: not wanted
  std::uint64_t lse_batch_stride = 0;
  std::uint64_t lse_head_stride = 0;
  std::uint64_t sink = 0;  // f32 [query heads], natural units; null: none
  // int32, as attention_forward's: rows of sequence b, in tensors of query_rows rows; null: dense.
  std::uint64_t query_starts = 0;
  std::uint64_t key_starts = 0;
  std::uint64_t key_lengths = 0;
  std::uint32_t query_rows = 0;
  std::uint32_t query_length = 0;  // of every sequence; packed: of the longest one that counts
  std::uint32_t key_rows = 0;
  std::uint32_t key_length = 0;  // the same of keys; says how many slots a row has
  // Which chunks a row sees: a window round its diagonal. Unlimited where the split kernel has no such limit. Kernels
  // whose spec has chunked find in its place what the split kernel finds there.
  std::int32_t causal_offset = 0;
  std::uint32_t bottom_right_mask = 0;
  std::int32_t window_left = 0;
  std::int32_t window_right = 0;
  std::uint32_t query_heads = 0;
  std::uint32_t o_row_stride = 0;
  float scale_log2e = 1;  // what turns the stored maxima into powers of two: the kernel takes its absolute value
  // Read only by kernels whose spec has rows=few: sequences of 1 to `few_rows` rows, for which the records have room.
  std::uint32_t few_rows = 0;
  // Read only by kernels whose spec has `listed`.
  attention::KeyListArguments lists;
  // For those and for kernels whose spec has `scaled`: query head → kv head, as attention_forward's.
  std::uint32_t kv_head_multiplier = 0;
  std::uint32_t o_dim_stride = 0;  // read only by kernels whose spec has trans_o
  // Read only by kernels whose spec has `scaled`. Without k where scores are powers of two.
  attention::CacheScales scales;
  std::uint64_t causal_flags =
      0;  // read only by kernels whose spec has causal_flags, and the last: as the split kernel's
};

// The arguments of kernels whose O is 8 bits.
struct OutputScaleArguments {
  Arguments all;
  attention::OutputScale scale;
};

inline constexpr std::size_t output_scale_at = offsetof(OutputScaleArguments, scale);
inline constexpr std::size_t causal_flags_at = offsetof(Arguments, causal_flags);

static_assert(causal_flags_at == 264);
static_assert(offsetof(Arguments, scales) == 216);
static_assert(offsetof(Arguments, lists) == 136);
static_assert(offsetof(Arguments, query_starts) == 64);
static_assert(offsetof(Arguments, scale_log2e) == 128);

}  // namespace wavejit::attention_combine
