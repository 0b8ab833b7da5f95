// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The arguments of attention_mask_lists, byte for byte: the runtime fills this struct and the kernel reads fields by
// offset.
#pragma once

#include <cstddef>
#include <cstdint>

namespace wavejit::attention_mask_lists {

// Tiles of keys by blocks of 64 rows, of each head and batch that the mask has of its own: [batches][heads][blocks]
// [tiles], and of the bits [rows of a block] behind it.
struct Arguments {
  std::uint64_t mask = 0;  // bytes; 0: the row does not see the key. Or a bias. Strides are bytes
  std::uint64_t mask_batch_stride = 0;
  std::uint64_t mask_head_stride = 0;
  // int32, −1: no entry. `whole`: tiles that all rows of the block see whole; null: all stand in `masked`.
  std::uint64_t masked = 0;
  std::uint64_t whole = 0;
  std::uint64_t bits = 0;  // 64 a row: bit i says whether it sees key i of the tile. Not of a bias
  // int32, as attention_forward's; null: query_length rows each.
  std::uint64_t query_starts = 0;
  std::uint32_t query_rows = 0;
  std::uint32_t query_length = 0;
  std::uint32_t key_length = 0;
  std::uint32_t mask_row_stride = 0;
  std::uint32_t heads = 1;   // of the mask
  std::uint32_t blocks = 1;  // of a head
  std::uint32_t tiles = 1;
  std::uint32_t nothing = 0;
  // No lengths of keys, whose tiles the walks leave out: they stand here for shared emission alone.
  std::uint64_t key_starts = 0;
  std::uint64_t key_lengths = 0;
  std::uint32_t key_rows = 0;
  std::uint32_t nothing_more = 0;
};

// In place of the bits of row 63, where a block has no such row: whether some row sees the tile, and whether it is one
// of the whole ones. 0: nobody sees it. So a walk of few rows, which no list was made for, knows what it may leave out.
inline constexpr int mark_of_mixed = 1;
inline constexpr int mark_of_whole = 2;
inline constexpr int mark_place = 63 * 8;  // bytes of the tile's

static_assert(offsetof(Arguments, query_rows) == 56);
static_assert(sizeof(Arguments) == 112);

}  // namespace wavejit::attention_mask_lists
