// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The kernel arguments of attention_forward, byte for byte as the kernel reads them.
//
// The runtime fills this struct on the hot path, the emitter reads it by these offsets; both include this header, and
// the static_asserts pin the layout. Strides are in bytes. A descriptor is built per (batch, head) slice, so whole
// tensors may be larger than 4 GiB while a slice may not (call/problem.h checks that).
//
// Which bytes which kernels read. argument_tail.h says of a spec where its arguments end; no kernel reads two things that
// stand in one place.
//
//     0 … 304   every kernel                     Arguments
//   304 … 344   keys in pages                    attention::PageArguments
//   344 … 352   parts that it merges itself      the counters of ArrivalArguments
//   344 … 360   rows=few, rows=many              RowLimits
//   344 … 416   lists of keys                    attention::KeyListArguments
//   360 … 368   causal_flags                     the address of FlaggedArguments
//   360 … 400   lists of key blocks              ListArguments
//   416 … 464   a cache or Q in 8 bits           CacheScales
//   464 … 472   with scales of tokens            TokenStrides
//   464 … 480   scattered dims                   DimStrides
//   464 … 488   Q in 8 bits                      attention::CacheScale
//   480 … 552   integers                         IntegerScales
//   552 … 568   O in 8 bits                      attention::OutputScale
#pragma once

#include <cstddef>
#include <cstdint>

#include "templates/attention/kernel/arguments.h"
#include "templates/attention/kernel/types.h"

namespace wavejit::attention_forward {

using attention::ScoreArguments;
using attention::SequenceArguments;

struct Arguments {
  std::uint64_t q = 0;
  std::uint64_t k = 0;
  std::uint64_t v = 0;
  std::uint64_t o = 0;
  std::uint64_t lse = 0;  // read only by kernels whose spec says lse
  std::uint64_t q_batch_stride = 0;
  std::uint64_t k_batch_stride = 0;
  std::uint64_t v_batch_stride = 0;
  std::uint64_t o_batch_stride = 0;
  std::uint64_t lse_batch_stride = 0;
  std::uint64_t q_head_stride = 0;
  std::uint64_t k_head_stride = 0;
  std::uint64_t v_head_stride = 0;
  std::uint64_t o_head_stride = 0;
  std::uint64_t lse_head_stride = 0;  // LSE rows of one head are contiguous floats
  std::uint32_t q_row_stride = 0;
  std::uint32_t k_row_stride = 0;
  std::uint32_t v_row_stride = 0;
  std::uint32_t o_row_stride = 0;
  // The rows of every sequence; with query_starts or key_starts of the longest one, and no sequence counts as longer.
  std::uint32_t query_length = 0;  // ≥ 1
  std::uint32_t key_length = 0;    // ≥ 0
  // The diagonal: row q stands at key q + causal_offset + ((key length − query length) & bottom_right_mask), with the
  // lengths of its own sequence. All ones aligns bottom-right, 0 counts causal_offset from key 0. A causal row sees the
  // keys up to its diagonal.
  std::int32_t causal_offset = 0;
  std::uint32_t bottom_right_mask = 0;
  // kv head = floor(q head · multiplier / 2³²): exact for all q heads < 65536 with multiplier = ceil(2³² / group), and
  // 0 stands for 2³² (group 1).
  std::uint32_t kv_head_multiplier = 0;
  float scale_log2e = 0;  // softmax scale · log2 e; may be 0 or negative

  // Window: keys from diagonal − window_left to diagonal + window_right. Unlimited is unlimited_window; read only by
  // kernels whose spec says window. Where it says chunked: keys of a local chunk and their multiplier (local_chunks.h).
  std::int32_t window_left = 0;
  std::int32_t window_right = 0;

  SequenceArguments sequences;
  ScoreArguments scores;

  std::uint64_t sink = 0;  // f32 [query heads], natural units; null: none

  // XCD swizzle. Workgroup x of the grid computes head (x mod dies) · heads_per_die + x / dies; the number of dies must
  // divide the number of heads. The kernel computes it as x · heads_per_die − (x / dies) · (query_heads − 1), where x /
  // dies = floor(x · die_multiplier / 2³²), as for kv_head_multiplier. With 1 and 0 the head is x.
  std::uint32_t heads_per_die = 1;
  std::uint32_t die_multiplier = 0;

  // Split keys; but for query_heads read only by kernels whose spec has split=. Partial results: see
  // docs/split-keys.md.
  std::uint64_t workspace = 0;
  std::uint32_t splits = 1;
  std::uint32_t query_heads = 0;
  std::uint32_t query_head_multiplier = 0;  // as kv_head_multiplier: x of the grid → split (packed heads: by kv heads)
  std::uint32_t split_multiplier = 0;       // the same for a division by `splits`

  // Packed heads: read only by kernels whose spec has heads=packed. Rows are divided by kv_head_multiplier.
  std::uint32_t kv_heads = 1;
  std::uint32_t group = 1;  // query heads of a kv head
};

// Where shared emission finds what it reads.
inline constexpr attention::TensorFields q_fields = {offsetof(Arguments, q), offsetof(Arguments, q_batch_stride),
                                                     offsetof(Arguments, q_head_stride),
                                                     offsetof(Arguments, q_row_stride)};
inline constexpr attention::TensorFields k_fields = {offsetof(Arguments, k), offsetof(Arguments, k_batch_stride),
                                                     offsetof(Arguments, k_head_stride),
                                                     offsetof(Arguments, k_row_stride)};
inline constexpr attention::TensorFields v_fields = {offsetof(Arguments, v), offsetof(Arguments, v_batch_stride),
                                                     offsetof(Arguments, v_head_stride),
                                                     offsetof(Arguments, v_row_stride)};
inline constexpr attention::TensorFields o_fields = {offsetof(Arguments, o), offsetof(Arguments, o_batch_stride),
                                                     offsetof(Arguments, o_head_stride),
                                                     offsetof(Arguments, o_row_stride)};
inline constexpr attention::LengthFields length_fields = attention::length_fields_of<Arguments>;
inline constexpr attention::DiagonalFields diagonal_fields = attention::diagonal_fields_of<Arguments>;
inline constexpr attention::ScoreFields score_fields = attention::score_fields_of<Arguments>;

static_assert(sizeof(Arguments) == 304);
static_assert(offsetof(Arguments, q_batch_stride) == 40);
static_assert(offsetof(Arguments, q_row_stride) == 120);
static_assert(offsetof(Arguments, scale_log2e) == 156);
static_assert(offsetof(Arguments, sequences) == 168);
static_assert(offsetof(Arguments, scores) == 200);
static_assert(offsetof(Arguments, sink) == 256);
static_assert(offsetof(Arguments, workspace) == 272);
static_assert(offsetof(Arguments, kv_heads) == 296);

// Workgroups: x = query head (split keys: split · query heads + query head), y = query tile (heaviest causal tiles
// first) or a pair of them (tile n − 1 − y of n, then tile y), z = batch or sequence. Packed heads: kv heads in place
// of query heads, and tiles of their rows.
struct LaunchGeometry {
  std::uint32_t grid_x = 1;
  std::uint32_t grid_y = 1;
  std::uint32_t grid_z = 1;
  std::uint32_t threads = 256;
  std::uint32_t dynamic_lds_bytes = 0;
};

}  // namespace wavejit::attention_forward
