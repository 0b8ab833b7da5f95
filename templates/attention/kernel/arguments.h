// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Parts of which the argument structs of attention kernels are made, byte for byte as the kernels read them, and
// offsets by which shared emission finds what families keep in places of their own. Strides are in bytes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "templates/attention/kernel/canon.h"

namespace wavejit::attention {

// Lengths in device memory, int32; each may be null. Packed sequences: rows starts[b] … starts[b + 1] − 1 of a tensor
// of query_rows (key_rows) rows, batch strides 0. key_lengths[b]: the keys of sequence b that count, from its first.
// Kernels of left-padded keys find first keys [batch] where key_starts stands: sequence b begins there and ends with
// the tensor.
// What does not fit (negative, beyond the rows, descending) is cut to what does: nothing outside is ever read.
struct SequenceArguments {
  std::uint64_t query_starts = 0;
  std::uint64_t key_starts = 0;
  std::uint64_t key_lengths = 0;
  std::uint32_t query_rows = 0;
  std::uint32_t key_rows = 0;
};

// What scores pass through (modifiers.h); each modifier's fields are read only by kernels whose spec has its word.
struct ScoreArguments {
  // Bias: the storage type, rows of key_length elements, one for each query row (packed: of query_rows). A stride of 0
  // broadcasts.
  std::uint64_t bias = 0;
  std::uint64_t bias_batch_stride = 0;
  std::uint64_t bias_head_stride = 0;
  std::uint64_t alibi = 0;  // f32 slopes [batch or 1][query heads]
  std::uint64_t alibi_batch_stride = 0;
  std::uint32_t bias_row_stride = 0;
  float softcap_log2e = 0;  // cap · log2 e
  // 2 · |scale| · log2 e / cap: tanh(s · scale / cap) = 1 − 2 / (1 + exp2(s · rate)), s with the scale's sign.
  float softcap_rate = 0;
  // A row's maximum must grow by more than this, in powers of two, before its sums are rescaled.
  float rescale_threshold = lazy_rescale_threshold;
};

// Lengths of every sequence or of the longest, and the keys that a row sees: row q stands at key q + causal_offset +
// ((keys − query_length) & bottom_right_mask), its diagonal, and sees those from diagonal − window_left to diagonal +
// window_right.
struct SeenArguments {
  std::uint32_t query_length = 0;
  std::uint32_t key_length = 0;
  std::int32_t causal_offset = 0;
  std::uint32_t bottom_right_mask = 0;
  std::int32_t window_left = 0;
  std::int32_t window_right = 0;
};

static_assert(sizeof(SequenceArguments) == 32);
static_assert(sizeof(ScoreArguments) == 56);

// ---- Offsets in a kernel's arguments
// ---------------------------------------------------------------------------------

struct TensorFields {
  std::size_t pointer, batch_stride, head_stride, row_stride;
};

// The longest sequence's lengths, and those of each.
struct LengthFields {
  std::size_t query_length, key_length;  // 32 bits
  std::size_t sequences;                 // a SequenceArguments
};

// The diagonal: row q stands at key q + causal_offset + ((key length − query length) & bottom_right_mask).
struct DiagonalFields {
  std::size_t causal_offset, bottom_right_mask;
};

// A score's own: a ScoreArguments, and the keys of the longest sequence, by which rows of a bias are padded.
struct ScoreFields {
  std::size_t scores, key_length;
};

// Arguments that have them as fields of their own have them here.
template <typename Arguments>
inline constexpr LengthFields length_fields_of = {.query_length = offsetof(Arguments, query_length),
                                                  .key_length = offsetof(Arguments, key_length),
                                                  .sequences = offsetof(Arguments, sequences)};
template <typename Arguments>
inline constexpr DiagonalFields diagonal_fields_of = {.causal_offset = offsetof(Arguments, causal_offset),
                                                      .bottom_right_mask = offsetof(Arguments, bottom_right_mask)};
template <typename Arguments>
inline constexpr ScoreFields score_fields_of = {.scores = offsetof(Arguments, scores),
                                                .key_length = offsetof(Arguments, key_length)};

}  // namespace wavejit::attention
