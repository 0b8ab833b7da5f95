// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// V of the dims that a wave owns, where waves share a chunk of keys and nothing transposes on the way out of LDS: each
// wave loads its dims of every tile into registers, and turns them in an image of its own, tile after tile. Nobody else
// reads it, and a wave's LDS accesses happen in order: no barrier, and no second image.
//
// A lane has four keys of eight dims: its 16 bytes of four rows. Its granule of 16 keys is lane / 16, as the entries of
// pages stand in lanes (key_pages.h). The image is [dim][64 keys], as SwizzledTransposed has it: unit u of dim d at
// unit u xor swizzle(d), unit 2s + h with the keys of lane group h in the 16 of row block s. The swizzle is d % 8,
// which spreads eight neighbouring dims' reads, xor that of the dims' group of eight, which spreads the writes of 16
// lanes.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "codegen/language/lds.h"
#include "codegen/language/matrix.h"
#include "templates/attention/emit/key_pages.h"

namespace wavejit::attention_forward {

class WaveValues {
 public:
  static constexpr int image_bytes(int dims) { return dims * attention::tile_keys * element_bytes; }

  // In a region of LDS the wave's image (bytes, uniform). `first_dim`: uniform; `dims`: 32 or 64, as many for each
  // wave.
  struct Place {
    int region;
    language::Value* image;
    language::Value* first_dim;
    int dims;
  };
  // `pages` must stay.
  WaveValues(language::Kernel& kernel, language::Lds& lds, const language::MatrixUnit& matrix,
             const attention::Slice& slice, const Place& place, language::Value* lane_group,
             const std::optional<attention::KeyPages>& pages);

  // The loads of a tile one by one. `entries`: for keys that are looked up. If `exists` (uniform) is false they read
  // nothing, and zeros arrive. Keys before `unseen` (attention/emit/unseen_keys.h) are read as zeros, or as the first
  // row after them.
  using Load = std::function<language::Value*()>;
  std::size_t loads() const { return rows_.size(); }
  std::vector<Load> loads_of(language::Value* tile, language::Value* entries, language::Value* exists,
                             language::Value* unseen = nullptr) const;
  // What they loaded, into the image.
  void write(std::span<language::Value* const> loaded) const;
  // Dims of block dim_block; keys of row block row_block, in the order in which accumulators hold them.
  language::OperandA transposed(int dim_block, int row_block) const;

 private:
  static constexpr int element_bytes = 2;
  static constexpr int unit_bytes = 16;
  static constexpr int unit_dims = unit_bytes / element_bytes;
  static constexpr int units_of_dim = 8;  // of 64 keys; all banks
  static constexpr int rows_of_lane = 4;
  static constexpr int dim_bytes = units_of_dim * unit_bytes;

  language::Kernel& kernel_;
  language::Lds& lds_;
  const language::MatrixUnit& matrix_;
  attention::Slice slice_;
  Place place_;
  const std::optional<attention::KeyPages>& pages_;
  std::vector<language::Value*> rows_;     // per lane, of each load: of the tile
  std::vector<language::Value*> offsets_;  // and bytes: of keys that are looked up, in their granule or row
  language::Value* column_ = nullptr;      // of a row, where the lane's bytes begin
  std::vector<language::Value*> writes_;   // per lane: where the four keys of its first dim go, of each pass
  std::vector<language::Value*> reads_;    // and where its reads of each row block begin
};

}  // namespace wavejit::attention_forward
