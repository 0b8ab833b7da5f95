// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tiles of keys on their way from memory through LDS into fragments, of scores and of O. A walk asks in this order:
//
//   start     the wave's rows of the query, and the loads of the first tiles
//   whole     the tile at a place may be read by every wave
//   keys, all_scores, values
//   release   the wave is done with it
//
// What start, whole and release return is carried round the loop. Two ways, by what the target can do: line_ring.h,
// swizzled_ring.h.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "codegen/language/matrix.h"
#include "templates/attention/emit/tile_walk.h"
#include "templates/attention_latent/emit/workgroup.h"

namespace wavejit::attention_latent {

class KeyRing {
 public:
  virtual ~KeyRing() = default;

  // Phases of the loop: each reads a buffer of its own.
  virtual int buffers() const = 0;
  // `take`: emitted once, of each 16 dims of the query what a lane has of them as an operand, while keys are on their
  // way.
  using TakeQuery = std::function<void(const language::Values& query)>;
  virtual language::Values start(const attention::TileWalk& walk, const TakeQuery& take) = 0;
  // What start waits for first, of what is already emitted: loads by lanes.
  virtual language::Values first_loads() const { return {}; }
  virtual language::Values whole(int buffer, language::Value* place, const attention::TileWalk& walk,
                                 const language::Values& carried) = 0;
  virtual language::Values release(int buffer, language::Value* place, const attention::TileWalk& walk,
                                   const language::Values& carried) = 0;

  // The last tile need not be released: what is carried is the same before and behind it.
  virtual bool may_end_unreleased() const { return false; }

  // What is fetched of the next tile while the walk multiplies: operations of one instruction or a few, to be strung
  // between products. Not all at once: the queue of memory would hold the wave up. Between whole and release.
  virtual std::vector<std::function<void()>> fetches(int buffer, language::Value* place,
                                                     const attention::TileWalk& walk,
                                                     const language::Values& carried) = 0;
  // The same of what takes the place of something that scores read: between the products of O. Where there is some, all
  // others are begun before.
  virtual std::vector<std::function<void()>> fetches_behind_scores(language::Value* /*place*/,
                                                                   const attention::TileWalk& /*walk*/,
                                                                   const language::Values& /*carried*/) {
    return {};
  }

  // Blocks of 32 keys of which a wave multiplies scores: all, or its own, which are then block 0 of `keys`.
  virtual int key_blocks_of_wave() const { return attention::tile_keys / wave_rows; }
  // The tile's scores, of which this wave has multiplied its own.
  virtual std::vector<language::Accumulator> all_scores(std::vector<language::Accumulator> own) { return own; }
  // Before the first values of a tile.
  virtual void begin_values(int /*buffer*/) {}
  // For listed keys, else null: which of the 64 that `whole` spoke of the rows see, a bit each (i64, uniform).
  virtual language::Value* named() const = 0;

  // 32 keys, 16 dims of all of K's.
  virtual language::OperandA keys(int buffer, int key_block, int dim_block) = 0;
  // 32 dims of the wave's own share of V's, in the order of kernel/spec.h (ColumnOrder); 16 keys.
  virtual language::OperandA values(int buffer, int dim_block, int key_block) = 0;
  // What those two gave, as products take it. Asked for in front of the product: what it takes stands in the shadow of
  // the one before.
  virtual language::OperandA widened(const language::OperandA& read) { return read; }
  // Vector instructions that this takes beside reads.
  virtual int slots_of_values() const { return 0; }
};

std::unique_ptr<KeyRing> make_key_ring(language::Kernel& kernel, const WalkKernel& spec, const Workgroup& workgroup,
                                       const language::MatrixUnit& matrix);

}  // namespace wavejit::attention_latent
