// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Maxima and sums of chunks, all tiles of a chunk at once: what the canon's walker would have, in its order.
#pragma once

#include "codegen/language/lds.h"
#include "codegen/language/softmax.h"
#include "targets/wave_shape.h"
#include "templates/softmax_lse/emit/tile.h"

namespace wavejit::softmax_lse {

// Where a lane's tile stands.
struct ChunkPlace {
  language::Value* half;
  language::Value* column;      // of the wave's tiles
  language::Value* slot;        // of the tiles that its row has at a time
  language::Value* row;         // of the workgroup
  language::Value* tile_shift;  // 1 << tile_shift is how many those are; uniform
};

// LDS of a workgroup. Each wave has its own maxima, factors and sums, so that it waits for itself alone; parts are
// everybody's.
struct ChunkSumsPlan {
  explicit constexpr ChunkSumsPlan(const targets::WaveShape& shape) : wave(shape) {}
  targets::WaveShape wave;

  constexpr int waves() const { return threads / wave.lanes; }
  // One number of each of the wave's tiles.
  constexpr int row_bytes() const { return wave.rows * static_cast<int>(sizeof(float)); }
  // Each group of lanes has its own copy.
  constexpr int copies_bytes() const { return wave.groups() * row_bytes(); }
  constexpr int sums_bytes() const { return wave.groups() * static_cast<int>(language::running_sums) * row_bytes(); }
  // Bytes of each lane's maximum and sum.
  constexpr int parts_bytes() const { return wave.lanes * 2 * static_cast<int>(sizeof(float)); }
  static constexpr int maxima_at() { return 0; }
  constexpr int factors_at() const { return maxima_at() + (waves() * copies_bytes()); }
  constexpr int sums_at() const { return factors_at() + (waves() * copies_bytes()); }
  constexpr int parts_at() const { return sums_at() + (waves() * sums_bytes()); }
  constexpr int bytes() const { return parts_at() + (waves() * parts_bytes()); }
};

class ChunkSums {
 public:
  ChunkSums(language::Kernel& kernel, const language::Softmax& softmax, KeyOrder order, const ChunkPlace& place);

  // The part of the tile's chunk. Hidden scores are −∞. The same in all lanes of a chunk.
  language::PartStatistics part_of(const Scores& tile);
  // `row` with the parts that the workgroup has of it now, left to right. The same in all lanes of a row.
  language::PartStatistics merge_into(const language::PartStatistics& row, const language::PartStatistics& part);
  // All waves have read the parts: before part_of is used again.
  void leave_parts();

 private:
  language::Value* tile_maximum(const Scores& tile) const;

  language::Kernel& kernel_;
  const language::Softmax& softmax_;
  KeyOrder order_;
  ChunkPlace place_;
  ChunkSumsPlan plan_;
  language::Lds lds_;
  language::Value* step_;           // the tile's place in its chunk
  language::Value* own_;            // byte of the tile among the wave's
  language::Value* first_;          // the same of its chunk's first tile
  language::Value* half_maxima_;    // where this wave's maxima and factors stand, one copy for each half
  language::Value* wave_sums_;      // where this wave's sums stand
  language::Value* quads_;          // tiles of a chunk, in fours; uniform
  language::Value* chunks_of_row_;  // at a time; uniform
};

}  // namespace wavejit::softmax_lse
