// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Rows over several chunks of keys (docs/canonical-arithmetic.md): each chunk begins anew, and what it leaves is merged
// onto R, the chunks before it, left to right.
//
// A pipeline walks tiles and says when: `end_part` behind the maximum of a tile, `merge` before the next chunk's first
// weights are added to l and O. Both are a branch that is rarely taken. In a kernel that splits keys a part goes to
// the workspace instead, in the slot of its chunk, and attention_combine merges.
//
// R stands in registers, carried round the loop, where they are enough (merged_rows_plan), else in LDS behind the tiles
// and in private memory.
#pragma once

#include <optional>
#include <span>

#include "codegen/language/lane_place.h"
#include "codegen/language/matrix.h"
#include "codegen/language/private_memory.h"
#include "codegen/language/softmax.h"
#include "templates/attention/emit/tile_walk.h"
#include "templates/attention/emit/tiles_lines.h"
#include "templates/attention_forward/emit/schedule.h"
#include "templates/attention_forward/emit/workgroup.h"
#include "templates/attention_forward/kernel/merged_rows_plan.h"

namespace wavejit::attention_forward {

class MergedRows {
 public:
  // `lds`: whose LDS has the plan's slots; null where it has none.
  MergedRows(language::Kernel& kernel, const ForwardKernel& spec, const LdsPlan& plan, const Workgroup& workgroup,
             TileWalk& walk, const language::Softmax& softmax, const LineTiles* lds = nullptr);

  // What the loop carries at its beginning, and from then on: a pipeline adds it to its own state.
  language::Values start() const;

  // If the tile, whose maximum is in `state`, is the last of its chunk and another follows: m is put aside. `next`: the
  // one behind it, if there is one.
  void end_part(const Stop& tile, const Stop& next, language::SoftmaxState& state, language::Values& carried) const;
  // If the tile begins a chunk: the chunk before it, whose m was put aside, joins R.
  void merge(schedule::Half half, bool apart, const Stop& tile, language::SoftmaxState& state,
             std::span<language::Accumulator> outputs, language::Values& carried) const;
  // Both at once, for a walk that has not begun the tile.
  void end_chunk(const Stop& tile, language::SoftmaxState& state, std::span<language::Accumulator> outputs,
                 language::Values& carried) const;

  // Called after the last tile. Returns the whole row, or (with split keys) nothing, since the last part is in the
  // workspace.
  std::optional<language::PartStatistics> finish(const language::SoftmaxState& state,
                                                 std::span<language::Accumulator> outputs,
                                                 const language::Values& carried) const;

 private:
  // R, as far as an act has it before it.
  struct Merged {
    language::Value* maximum;
    language::Value* sum;
    language::Value* aside;  // the maximum of the chunk that ends
    language::Values quads;  // of O: four registers each
  };
  struct Blocks {
    std::size_t first;
    std::size_t end;
  };

  bool is_one_chunk() const { return plan_.place == MergedRowsPlan::Place::nowhere; }
  bool in_memory() const { return plan_.place == MergedRowsPlan::Place::memory; }
  // What one block of code sees of R in memory.
  class Memory;
  std::size_t output_blocks() const {
    return static_cast<std::size_t>(output_blocks_of_wave(spec_, language::wave_shape(kernel_).rows));
  }
  bool is_kept(std::size_t block, std::size_t which) const;
  Blocks blocks_of(schedule::Half half) const;

  // `maximum` is the part's, or null where it was put aside.
  void absorb(schedule::Half half, bool apart, const Stop& tile, language::Value* maximum,
              language::SoftmaxState& state, std::span<language::Accumulator> outputs, language::Values& carried) const;
  language::SoftmaxState settled(const language::SoftmaxState& state) const;
  void store_part(schedule::Half half, language::Value* chunk, language::Value* maximum, language::Value* sum,
                  std::span<const language::Accumulator> outputs) const;
  Merged load(const Memory& memory, const Blocks& blocks) const;
  Merged carried_part(const language::Values& carried, const Blocks& blocks) const;
  language::Value* merged(const language::MergeWeights& weights, language::Value* earlier,
                          language::Value* later) const;

  language::Kernel& kernel_;
  const ForwardKernel& spec_;
  const Workgroup& workgroup_;
  const TileWalk& walk_;
  const language::Softmax& softmax_;
  MergedRowsPlan plan_;
  const LineTiles* lds_;
  std::optional<language::PrivateMemory> private_memory_;
};

}  // namespace wavejit::attention_forward
