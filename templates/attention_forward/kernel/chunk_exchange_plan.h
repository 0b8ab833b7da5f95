// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Where waves that share a chunk of keys leave for each other what one has made of its tile (emit/chunk_exchange.h):
// the largest score of each row, sums of weights, and the weights. Bytes behind the beginning of their room in LDS.
#pragma once

#include "templates/attention/kernel/canon.h"

namespace wavejit::attention_forward {

struct ChunkExchangePlan {
  int waves;
  int lanes;  // of a wave

  static constexpr int lane_bytes = 16;
  // Keys that one operand of the matrix unit has.
  static constexpr int operand_keys = 16;
  static constexpr int operands = attention::tile_keys / operand_keys;

  // A lane's maxima stand side by side, the tiles' in turn; they are read at once.
  constexpr int maximum(int tile) const { return tile * static_cast<int>(sizeof(float)); }
  constexpr int maxima_bytes() const { return lanes * lane_bytes; }
  // The four running sums of a lane, tile by tile.
  constexpr int sums(int tile) const { return maxima_bytes() + (tile * lanes * lane_bytes); }
  // An operand of a lane.
  constexpr int weights(int tile, int operand) const {
    return sums(waves) + (((tile * operands) + operand) * lanes * lane_bytes);
  }
  constexpr int total_bytes() const { return weights(waves, 0); }
};

}  // namespace wavejit::attention_forward
