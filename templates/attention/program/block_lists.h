// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Lists of key blocks that the tools make where a descriptor asks for lists: a list for each sequence, head and block
// of rows.
//
//   lists=64x64:10         at random: 10 % of all blocks, those of each list its own
//   lists=64x64:10 lists_alike   windows in three dimensions, as video has them: keys are a grid of blocks, 16 wide and 8
//                          high, and a block of rows sees 12 × 3 × n blocks around its own place in it. Windows are
//                          moved into the grid where they would reach out of it. All heads have the same
#pragma once

#include <cstdint>
#include <vector>

#include "templates/attention/program/experiment.h"

namespace wavejit::attention::program {

// Whether the list of the row's block names the block of the key.
bool is_listed(const Experiment& problem, std::int64_t sequence, std::int64_t head, std::int64_t row, std::int64_t key);
// How many of the keys that the mask shows the row's list names.
std::int64_t listed_keys(const Experiment& problem, std::int64_t sequence, std::int64_t head, std::int64_t row,
                         const VisibleKeys& seen);

// Lists as a call gives them: [batch][query heads][row blocks], each with room for `capacity` entries.
struct ListArrays {
  std::int64_t row_blocks = 0;
  std::int64_t capacity = 0;
  std::vector<std::int32_t> counts;
  std::vector<std::int32_t> indices;
};
ListArrays lists_of(const Experiment& problem);

}  // namespace wavejit::attention::program
