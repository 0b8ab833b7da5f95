// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Byte for byte what a cache_append kernel reads, and how a launch is divided. Strides are in bytes.
//
// Workgroups: x = tokens, y = batch, z = parts. A part is as many heads of K, of V or of Q as one wave holds, eight
// dims a lane; K's parts come first, then V's, then Q's. Each wave takes `tokens_of_wave` tokens of its part.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace wavejit::cache_append {

// Dims that a lane holds.
inline constexpr int dims_of_lane = 8;
inline constexpr int threads = 256;
inline constexpr int tokens_of_wave = 1;

// K, V or Q: where it comes from and where it goes.
struct Side {
  std::uint64_t source = 0;
  std::uint64_t source_batch_stride = 0;
  std::uint64_t source_token_stride = 0;
  std::uint64_t target = 0;
  // The row of slot s stands at page · page_stride + ⌊key / 8⌋ · group_stride + (key mod 8) · key_stride, with s = page
  // · page size + key. Of Q, whose rows have no slots, these are the strides of the batch, of eight tokens and of one.
  std::uint64_t page_stride = 0;
  std::uint64_t group_stride = 0;
  std::uint64_t key_stride = 0;
  std::uint32_t source_head_stride = 0;
  std::uint32_t source_dim_stride = 0;
  std::uint32_t source_row_bytes = 0;  // of a token: to its last element
  std::uint32_t target_head_stride = 0;
  std::uint32_t target_piece_stride = 0;  // of dims_of_lane dims, or of one where elements are written one at a time
  std::uint32_t target_row_bytes = 0;
  std::uint32_t heads = 0;
  std::uint32_t pieces = 0;      // of a head: dims / dims_of_lane
  std::uint32_t lane_shift = 0;  // a head has 1 << lane_shift lanes of a wave
  std::uint32_t heads_of_part = 0;
};
static_assert(sizeof(Side) == 96);

struct Arguments {
  std::array<Side, 3> sides = {};
  std::uint64_t slots = 0;      // a number for each token of each batch, int32 or int64: negative: nothing is written
  std::uint64_t positions = 0;  // the same; with rotary alone
  std::uint64_t cosines = 0;    // tables: rows of rotary_pieces · dims_of_lane / 2 numbers
  std::uint64_t sines = 0;
  std::uint64_t cosine_stride = 0;
  std::uint64_t sine_stride = 0;
  std::uint32_t table_rows = 0;
  std::uint32_t rotary_pieces = 0;  // the first pieces of a head are turned
  std::uint32_t tokens = 0;         // of a batch
  std::uint32_t slot_shift = 0;     // 2 of int32, 3 of int64
  std::uint32_t position_shift = 0;
  std::uint32_t slot_count = 0;  // of the cache: others count as negative
  std::uint32_t page_size = 0;
  std::uint32_t page_multiplier = 0;  // slot → page: slot · multiplier >> shift
  std::uint32_t page_shift = 0;
  std::uint32_t value_part = 0;  // the first part of V, of Q
  std::uint32_t query_part = 0;
  float one = 1;  // the scale where there is none
};
static_assert(sizeof(Arguments) == 384);

// Where the scales of keys or values that are written in 8 bits stand. A number for each head, which is read; or
// numbers for each slot, which are written, at scale + page · page_stride + key · key_stride + head · head_stride: one
// for each head, or for each tile of a row.
struct ScaleSide {
  std::uint64_t scale = 0;
  std::uint64_t page_stride = 0;
  std::uint64_t key_stride = 0;
  std::uint32_t head_stride = 0;
  std::uint32_t row_bytes = 0;  // of a slot
};
static_assert(sizeof(ScaleSide) == 32);

// The arguments of a cache of 8 bits.
struct NarrowArguments {
  Arguments call;
  std::array<ScaleSide, 2> scales = {};  // of K and of V
};
static_assert(offsetof(NarrowArguments, scales) == sizeof(Arguments));

// angles=base. Per pair of dims: revolutions a position, times 2^64.
inline constexpr std::size_t max_pairs = 128;
struct BaseArguments {
  NarrowArguments narrow;
  std::array<std::uint64_t, max_pairs> frequencies = {};
};
static_assert(offsetof(BaseArguments, frequencies) == sizeof(NarrowArguments));

}  // namespace wavejit::cache_append
