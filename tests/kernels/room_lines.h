// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Measures the table of kernel/room.h: compiles the heaviest kernels of each cell, with ascending budgets.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "templates/attention_forward/kernel/room.h"

namespace wavejit::tests {

// A line of the table, and specs of it, plain and whole: what its cells are made of. They differ in
// words that no line has (numbers, some head dims, few rows, LSE), and a cell is what the one takes that needs most.
struct RoomKernels {
  std::string line;
  std::vector<attention_forward::ForwardKernel> plains;
};
// All lines of a target that rules of other reasons leave kernels, in the order of the table.
std::vector<RoomKernels> all_room_kernels(const targets::Target& target);

using RoomTexts = std::array<std::string, attention_forward::all_row_ends.size()>;
// The texts of a line's ends.
RoomTexts measure_room(const RoomKernels& kernels);

}  // namespace wavejit::tests
