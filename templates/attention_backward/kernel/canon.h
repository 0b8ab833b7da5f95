// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Numbers of the canonical arithmetic (docs/canonical-arithmetic.md, "Backward") that decide bits of gradients.
#pragma once

#include <algorithm>
#include <cstdint>

namespace wavejit::attention_backward {

// Rows are walked in tiles from row 0 of their sequence; inside a tile the heads of a group follow one another.
inline constexpr int tile_rows = 64;

// The sums of dK and dV begin anew after a run of row tiles of one head. A run has this many rows · heads of the group,
// so that adding up two runs (reading and writing 16 bytes for each dim of a key) stays below 2 % of what a run
// multiplies, whatever the group. Derived: 16 · D bytes at 5.5 TB/s against 8 · D · rows · 1/1.3 PFLOP/s is 473 / rows.
inline constexpr std::uint32_t run_row_heads = 32768;
constexpr std::uint32_t run_tiles_of(std::uint32_t group) {
  return std::max<std::uint32_t>(run_row_heads / (tile_rows * group), 1);
}

// The chains of d_sink: each takes every 256th row.
inline constexpr int sink_chains = 256;

}  // namespace wavejit::attention_backward
