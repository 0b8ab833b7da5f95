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
#include "tools/call_memory.h"

namespace wavejit::attention::program {

// Whether the list of the row's block names the block of the key.
bool is_listed(const Experiment& problem, std::int64_t sequence, std::int64_t head, std::int64_t row, std::int64_t key);
// How many of the keys that the mask shows the row's list names.
std::int64_t listed_keys(const Experiment& problem, std::int64_t sequence, std::int64_t head, std::int64_t row,
                         const VisibleKeys& seen);

inline std::int64_t block_count(std::int64_t length, std::int64_t size) { return (length + size - 1) / size; }

using BlockList = std::vector<std::int32_t>;
// Lists as a call gives them; what it lacks is empty. Each has room for `capacity` entries, or they stand one behind the
// other, each from its start.
struct ListArrays {
  std::vector<std::int32_t> indices;
  std::vector<std::int32_t> counts;
  std::vector<std::int32_t> starts;
  std::int64_t capacity = 0;
};
// What says where a list ends. With counts, the entries behind the last that counts name block 0, so that a kernel which
// reads them would see it.
enum class ListEnds : std::uint8_t { counts, starts, marks };
ListArrays arrays_of(const std::vector<BlockList>& lists, ListEnds ends, std::int64_t room = 0);

// [batches][heads][row blocks], of blocks of so many rows and keys.
struct ListedBlocks {
  std::int64_t rows = 0;  // 0: there are none
  std::int64_t keys = 0;
  std::int64_t batches = 0;
  std::int64_t heads = 0;
  std::int64_t row_blocks = 0;
  ListArrays masked;
  ListArrays whole;  // of blocks that the mask shows whole

  void give(wavejit_block_lists& to, tools::CallMemory& memory) const;
};
ListedBlocks lists_of(const Experiment& problem);

}  // namespace wavejit::attention::program
