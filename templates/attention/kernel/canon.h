// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Numbers of the canonical arithmetic (docs/canonical-arithmetic.md) that every kernel of attention shares: they decide
// bits.
#pragma once

namespace wavejit::attention {

// Keys are walked in tiles, and sums begin anew at each chunk; both are counted from key 0 of the sequence.
inline constexpr int tile_keys = 64;
inline constexpr int chunk_keys = 1024;
inline constexpr int chunk_tiles = chunk_keys / tile_keys;
static_assert(chunk_tiles % 2 == 0);  // walks that take tiles in pairs count on it
// Keys that a list names are cut by their place in the list.
inline constexpr int list_chunk_keys = 256;
inline constexpr int list_chunk_tiles = list_chunk_keys / tile_keys;
static_assert(list_chunk_tiles % 2 == 0);
// By how much a row's maximum must grow, in powers of two, before its sums follow. A guess that peers share: weights
// stay under 2⁸, far inside the range of fp16 and of every 8-bit format.
inline constexpr float lazy_rescale_threshold = 8;

}  // namespace wavejit::attention
