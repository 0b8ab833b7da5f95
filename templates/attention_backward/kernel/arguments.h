// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What both kernels read, byte for byte. Strides are in bytes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "templates/attention/kernel/arguments.h"

namespace wavejit::attention_backward {

struct TensorArgument {
  std::uint64_t pointer = 0;
  std::uint64_t batch_stride = 0;
  std::uint64_t head_stride = 0;
  std::uint32_t row_stride = 0;
  std::uint32_t reserved = 0;
};

// One f32 a query row; the rows of a head stand side by side.
struct RowNumbersArgument {
  std::uint64_t pointer = 0;
  std::uint64_t batch_stride = 0;
  std::uint64_t head_stride = 0;
};

// One f32 a sequence and query head.
struct HeadNumbersArgument {
  std::uint64_t pointer = 0;
  std::uint64_t batch_stride = 0;
  std::uint64_t head_stride = 0;
};

// Rows of a bias side by side; what shares it, the dBias kernel adds up: this many batches and heads behind those that
// a workgroup begins with. A stride of what is shared is 0.
struct BiasGradientArgument {
  std::uint64_t pointer = 0;
  std::uint64_t batch_stride = 0;
  std::uint64_t head_stride = 0;
  std::uint32_t row_stride = 0;
  std::uint32_t batches = 1;
  std::uint32_t heads = 1;
  std::uint32_t reserved = 0;
};

struct Arguments {
  TensorArgument q, k, v, o, d_o, dq, dk, dv;
  RowNumbersArgument lse;
  RowNumbersArgument d_lse;  // pointer null: none
  RowNumbersArgument delta;  // the workspace: the dQ kernel writes it, the dK/dV kernel reads it
  RowNumbersArgument parts;  // its second half, with several runs: f32 sums of runs, a workgroup's side by side
  attention::SeenArguments seen;
  std::uint32_t kv_head_multiplier = 0;  // q head → kv head, as emit/integers.h divides
  std::uint32_t group = 1;               // query heads of a kv head
  float scale_log2e = 0;                 // may be 0 or negative
  float dq_factor = 0;                   // the scale, with its sign; 1 where a later call goes on with the sums
  float dk_factor = 0;
  std::uint32_t run_tiles = 1;  // row tiles of a run: the sums of dK and dV begin anew after each run
  attention::SequenceArguments sequences;
  attention::ScoreArguments scores;
  std::uint64_t no_lengths = 0;  // null: where keys are asked for that key_lengths does not cut
  // All bits or none: whether f32 gradients hold sums that these go behind.
  std::uint32_t dq_before = 0;
  std::uint32_t dk_dv_before = 0;
  RowNumbersArgument given_delta;  // pointer null: delta is made of o
  HeadNumbersArgument sink;        // of the d_sink kernel; batch stride 0
  HeadNumbersArgument d_sink;
  BiasGradientArgument d_bias;
};
static_assert(sizeof(Arguments) == 8 * 32 + 4 * 24 + 48 + 32 + 56 + 8 + 8 + 3 * 24 + 40);

constexpr attention::TensorFields tensor_fields(std::size_t at) {
  return {.pointer = at + offsetof(TensorArgument, pointer),
          .batch_stride = at + offsetof(TensorArgument, batch_stride),
          .head_stride = at + offsetof(TensorArgument, head_stride),
          .row_stride = at + offsetof(TensorArgument, row_stride)};
}
inline constexpr attention::LengthFields length_fields = {.query_length = offsetof(Arguments, seen.query_length),
                                                          .key_length = offsetof(Arguments, seen.key_length),
                                                          .sequences = offsetof(Arguments, sequences)};
inline constexpr attention::DiagonalFields diagonal_fields = {
    .causal_offset = offsetof(Arguments, seen.causal_offset),
    .bottom_right_mask = offsetof(Arguments, seen.bottom_right_mask)};
inline constexpr attention::ScoreFields score_fields = {.scores = offsetof(Arguments, scores),
                                                        .key_length = offsetof(Arguments, seen.key_length)};

// Workgroups of the dQ kernel:    x = query head, y = query tile (heaviest causal tiles first), z = sequence.
// Workgroups of the dK/dV kernel: x = kv head, y = key tile (the first have the most rows), z = sequence.
// Workgroups of the d_sink kernel: x = query head, z = sequence.
// Workgroups of the dBias kernel:  x = row tile · key tiles + key tile, y = head, z = batch, of the bias or of packed
// rows.

}  // namespace wavejit::attention_backward
