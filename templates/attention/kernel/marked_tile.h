// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A tile of keys with marks: which blocks of a unit's query rows see it. Walks that a list makes have them in place of
// bare numbers; one dword each.
#pragma once

#include <cstdint>

namespace wavejit::attention {

inline constexpr int block_rows = 64;
inline constexpr int most_blocks = 4;  // of a unit

// The tile's number takes the low bits.
inline constexpr int masked_bit = 22;  // the first block's: it sees of the tile what the mask shows
inline constexpr int whole_bit = 26;   // it sees the tile whole
inline constexpr int begins_bit = 30;  // a chunk begins with this tile, which is not the walk's first
inline constexpr std::uint32_t marked_tile_number = (std::uint32_t{1} << masked_bit) - 1;
static_assert(whole_bit == masked_bit + most_blocks && begins_bit == whole_bit + most_blocks);

}  // namespace wavejit::attention
