// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Key and value tiles on their way from memory through LDS into fragments.
//
// A stream is one tensor's tiles as they stand staged. Its rows are read as they are, or transposed; who wants both of
// one buffer takes both. Two ways of staging, one interface; which one a target gets is lds_layout.h's choice. Both
// keep the next tile in flight while the current one is worked on:
//
//   lines      LDS DMA into the other of two buffers
//   swizzled   loads into registers, written to the one buffer when everybody is done with it
//
// Vectorised pages come in other pieces, by the same two ways (tiles_vectorised.h).
#pragma once

#include <memory>

#include "codegen/language/lds.h"
#include "codegen/language/matrix.h"
#include "templates/attention/emit/slice.h"
#include "templates/attention/emit/tile_walk.h"
#include "templates/attention/kernel/lds_layout.h"

namespace wavejit::attention {

// Fragments of a staged tile. As operand A; its dwords are those of an operand B as well.
class TileStream {
 public:
  virtual ~TileStream() = default;

  // Rows of block row_block, dims of fragment dim_block: as many as a wave has rows, and an operand has elements a row.
  virtual language::OperandA rows(int buffer, int row_block, int dim_block) = 0;
  // Dims of block dim_block; rows of fragment row_block, in the order in which accumulators hold them.
  virtual language::OperandA transposed(int buffer, int dim_block, int row_block) = 0;
  // The same of bytes: 16 of a lane, of 32 rows. Null where tiles do not stand so that this can be read.
  virtual language::Value* transposed_bytes(int /*buffer*/, int /*dim_block*/, int /*row_block*/) { return nullptr; }
};

// K and V of a walk over keys, one tile after the other.
class Tiles {
 public:
  virtual ~Tiles() = default;

  // Begins the loads of the first tile; returns what is in flight in registers.
  virtual language::Values start(const Stops& stops, const TileWalk& walk) = 0;

  // After this call the first tile of `stops` may be read from `buffer` by every wave, and the next one is on its way
  // if there is one. All barriers of the kernel are in here: the reads of the tile before have returned before anything
  // overwrites them, and what was written is complete before anything reads it.
  virtual language::Values advance(int buffer, const Stops& stops, const TileWalk& walk,
                                   const language::Values& in_flight) = 0;
  // If keys and values of tiles come apart (TileShape::apart), `advance` is of keys alone. From here on values may be
  // read, too.
  virtual void advance_values(int /*buffer*/, const Stops& /*stops*/, const TileWalk& /*walk*/) {}

  // For listed keys, else null: which of the 64 of the tile that advance spoke of are named, a bit each (i64, uniform).
  virtual language::Value* named() const { return nullptr; }

  virtual TileStream& keys() = 0;
  virtual TileStream& values() = 0;
};

std::unique_ptr<Tiles> make_tiles(language::Kernel& kernel, const TileShape& shape, const LdsPlan& plan,
                                  const KeyTensors& tensors, language::Value* lane_group,
                                  const language::MatrixUnit& matrix);

}  // namespace wavejit::attention
