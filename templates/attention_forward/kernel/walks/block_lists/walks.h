// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A walk: the tiles of keys that a unit of query rows sees, in ascending order, as attention_block_lists leaves it and
// kernels of block lists read it.
//
// A unit is as many rows as a workgroup has, or as a list has where that is more: 64, 128 or 256, in blocks of 64. An
// entry is a marked tile (templates/attention/kernel/marked_tile.h): it says which blocks see it. What a call says
// twice, in no order, or outside the keys is gone by then.
//
// A walk has an entry at least: without any tile it says so, and the entry is no tile of the sequence's. Pipelines that
// look ahead want two tiles of a chunk of keys: they find one that is alone twice, the second time seen by nobody.
#pragma once

#include <cstddef>
#include <cstdint>

namespace wavejit::attention_block_lists {

struct Header {
  std::uint32_t start = 0;    // of the walk, counted in entries
  std::uint32_t count = 0;    // ≥ 1
  std::uint32_t several = 0;  // 1: it has tiles of several chunks
  std::uint32_t empty = 0;    // 1: its lists name no tile of the sequence
};
static_assert(sizeof(Header) == 16);

// The kernel marks this many tiles of keys at a time, one dword of LDS for each.
inline constexpr int marked_tiles = 4096;

// Units are walked in an order: the longest first, so that no long unit is left over at the end of a launch. They are
// sorted by classes of length; units of one class keep their own order, since neighbours share keys. The units of a
// head are sorted in parts of this many.
inline constexpr int ordered_units = 4096;
inline constexpr int length_classes = 64;

}  // namespace wavejit::attention_block_lists
