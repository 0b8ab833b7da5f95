// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Weights on their way from the wave that makes them to the one that shares its keys, through LDS, in f32: the same
// lane reads what it wrote, so the other wave has them where its own dP − delta stand.
//
// The wave that takes is a tile behind the one that gives. Tile t in time, and the barriers between:
//
//   giver   tile t − 1 │ S, P of tile t, given; dV of tile t │ tile t + 1
//   taker   tile t − 2 │ tile t − 1                          │ P of tile t taken; dK of tile t
//
// One barrier a tile is enough. What is written in front of it is read behind it, and a place is written again three
// tiles later. Tiles of rows have three buffers for the same reason: the taker's, the giver's, the one on its way.
#pragma once

#include "codegen/language/fragment.h"
#include "codegen/language/lds.h"
#include "codegen/language/strand.h"
#include "templates/attention_backward/kernel/spec.h"

namespace wavejit::attention_backward {

// Where images of rows and columns stand by turns (row_tiles.h), products of columns are those of the tile before, in
// both waves; two barriers a tile, and one place of weights:
//
//   giver   tile t      S of tile t │ P of tile t, given; dV of tile t − 1 │
//   taker   tile t      P of tile t − 1 taken; dP of tile t │ dK of tile t − 1 │

// Tiles of rows, and of weights, that waves which share keys have in LDS.
inline constexpr int shared_buffers = 3;
// How many tiles behind the one that they walk the next one is fetched for: the taker's is the giver's one further.
inline constexpr int giver_lead = 1;
inline constexpr int taker_lead = 2;

class SharedWeights {
 public:
  // `buffers`: as many as tiles of rows have, and as many regions.
  static int bytes(language::Kernel& kernel, int row_blocks, int buffers) {
    return buffers * bytes_of_buffer(kernel, row_blocks);
  }

  SharedWeights(language::Kernel& kernel, const language::Lds& lds, int row_blocks, int first_byte, int first_region);

  // Gives the weights of block `block` of rows of the tile in `buffer`, piece by piece.
  void add_give(language::Strand& strand, const language::Accumulator& weights, int buffer, int block) const;
  void add_take(language::Strand& strand, language::Accumulator& weights, language::AccumulatorLayout layout,
                int buffer, int block) const;

 private:
  static constexpr int part_bytes = 16;  // of a lane: four rows
  static int bytes_of_block(language::Kernel& kernel);
  static int bytes_of_buffer(language::Kernel& kernel, int row_blocks) {
    return waves_of(kernel.target()) / sharing_waves * row_blocks * bytes_of_block(kernel);
  }
  int at(int buffer, int block, int quarter) const;

  language::Kernel& kernel_;
  const language::Lds& lds_;
  int row_blocks_;
  int first_region_;
  language::Value* place_;  // of a lane
};

}  // namespace wavejit::attention_backward
