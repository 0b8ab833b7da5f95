// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Key and value tiles on their way from memory through LDS into fragments.
//
// Two ways, one interface; which one a target gets is lds_layout.h's choice. Both keep the next tile in flight while
// the current one is worked on:
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
#include "templates/attention/kernel/lds_layout.h"

namespace wavejit::attention {

class Tiles {
 public:
  virtual ~Tiles() = default;

  // Begins the loads of the first tile; returns what is in flight in registers.
  virtual language::Values start(language::Value* tile) = 0;

  // After this call tile `tile` may be read from `buffer` by every wave, and tile + 1 is on its way if there is one
  // (`tiles` in all). All barriers of the kernel are in here: the reads of the tile before have returned before
  // anything overwrites them, and what was written is complete before anything reads it.
  virtual language::Values advance(int buffer, language::Value* tile, language::Value* tiles,
                                   const language::Values& in_flight) = 0;

  // K as operand A: 32 keys from 32 · key_block on, 16 dims from 16 · dim_block on.
  virtual language::OperandA keys(int buffer, int key_block, int dim_block) = 0;
  // Vᵀ as operand A: 32 dims from 32 · dim_block on; 16 keys from 16 · key_block on, in the order in which the score
  // accumulators hold them.
  virtual language::OperandA values_transposed(int buffer, int dim_block, int key_block) = 0;
};

std::unique_ptr<Tiles> make_tiles(language::Kernel& kernel, const TileShape& shape, const LdsPlan& plan,
                                  const KeyTensors& tensors, language::Value* lane_group,
                                  const language::MatrixUnit& matrix);

}  // namespace wavejit::attention
