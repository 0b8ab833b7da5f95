// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How many rows (of the dQ kernel) or keys (of the dK/dV kernel) a workgroup takes when nobody says otherwise. The
// same bits with each.
//
//   64   two waves share a block of keys; the dQ kernel takes 128
//   128  a block a wave
//   256  two blocks a wave
#pragma once

#include <array>
#include <cstdint>

#include "families/kernel/names.h"
#include "templates/attention_backward/kernel/spec.h"

namespace wavejit::attention_backward {

inline constexpr std::array<int, 3> tile_sizes = {rows_of_workgroup / sharing_waves, rows_of_workgroup,
                                                  rows_of_workgroup* most_blocks};

// How many workgroups a launch has for a device's compute units (call/problem.h, are_few and are_many).
enum class Grid : std::uint8_t { few, some, many };
inline constexpr families::Names<Grid, 3> grids = {{{Grid::few, "few"}, {Grid::some, "some"}, {Grid::many, "many"}}};

// Whether a target has a dK/dV kernel whose workgroups have `tile` keys: in bf16, of 128 dims, without modifiers.
bool has_tile(const targets::Target& target, int tile);
// What `wavejit tune` found (kernel/tuned_defaults.inc, docs/tune.md), where the target has it; kernels that have no
// room for it take fewer blocks.
int default_tile(const targets::Target& target, Grid grid);

}  // namespace wavejit::attention_backward
