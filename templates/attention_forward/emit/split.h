// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Split keys: which keys a workgroup of a split kernel walks, and what it leaves for attention_combine.
//
// A sequence's chunks are cut into `splits` runs, as even as whole chunks allow. A workgroup walks the tiles of its run
// that its rows see and leaves the part of each chunk in that chunk's slot, so that who walked it shows nowhere.
// docs/split-keys.md has the formulas.
#pragma once

#include "codegen/language/buffer.h"
#include "codegen/language/matrix.h"
#include "templates/attention_forward/emit/workgroup.h"

namespace wavejit::attention_forward {

// x of the grid is split · query heads + query head; packed heads: kv heads.
struct GridPlace {
  language::Value* query_head;  // packed heads: the kv head
  language::Value* split;
};
GridPlace place_of(language::Kernel& kernel, const ForwardKernel& spec, language::Value* grid_x);

// The tiles of a run of whole chunks, uniform: may reach past the sequence, and first > last where there are none.
struct KeyTiles {
  language::Value* first;
  language::Value* last;
  language::Value* count;
};
// `merged`: by the last workgroup to arrive, so that the first run of no keys is one, too.
KeyTiles tiles_of_run(language::Kernel& kernel, language::Value* split, language::Value* key_length, int chunk_keys,
                      bool merged);

// Where the workgroup's rows leave the part of one chunk: O, m and l as they are, in f32 (combine/workspace.h). A row
// that sees nothing of it leaves 0, −inf and 0.
class PartRecords {
 public:
  PartRecords(language::Kernel& kernel, const ForwardKernel& spec, const Workgroup& workgroup, language::Value* chunk);

  void store_maximum(language::Value* maximum) const;
  void store_sum(language::Value* sum) const;
  // 32 dims of O, counted in such blocks.
  void store_output(std::size_t block, const language::Accumulator& output) const;

 private:
  void store_statistic(int dword, language::Value* value) const;

  language::Kernel& kernel_;
  int head_dim_;
  LanePlace place_;
  WaveShare share_;
  language::Reach reach_;
  language::Value* slots_;  // of a row
  language::Value* slot_;   // the chunk's
  language::Value* row_;    // per lane: byte offset of the row
  language::Buffer records_;
};

// For those that merge them: the parts of all chunks of the tile's rows, and where those of the lane's row begin.
// Nowhere, where it has none.
language::Buffer records_of_tile(language::Kernel& kernel, const ForwardKernel& spec, const Workgroup& workgroup);
language::Value* offset_in_tile(language::Kernel& kernel, const ForwardKernel& spec, const Workgroup& of_lane);

}  // namespace wavejit::attention_forward
