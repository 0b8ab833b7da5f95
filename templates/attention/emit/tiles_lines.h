// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tiles in lines (lds_layout.h), filled by 16-byte LDS DMA, two buffers; V transposed by the read.
#pragma once

#include <optional>

#include "templates/attention/emit/key_pages.h"
#include "templates/attention/emit/tile_pages.h"
#include "templates/attention/emit/tiles.h"

namespace wavejit::attention {

class LineTiles final : public Tiles {
 public:
  LineTiles(language::Kernel& kernel, const TileShape& shape, const LdsPlan& plan, const KeyTensors& tensors,
            language::Value* lane_group, const language::MatrixUnit& matrix);

  language::Values start(language::Value* tile) override;
  language::Values advance(int buffer, language::Value* tile, language::Value* tiles,
                           const language::Values& in_flight) override;
  // Single steps, for a pipeline that places waits and barriers itself: one tile of K or V on its way into a buffer, in
  // k_transfers() or v_transfers() DMA instructions of this wave.
  // Keys in pages of whole tiles have a `place`, which was looked up.
  TilePages::Place look_up(language::Value* tile) const { return tile_pages_->look_up(tile, TilePages::Way::scalar); }
  void fetch_keys(int buffer, language::Value* tile, const TilePages::Place& place = {});
  void fetch_values(int buffer, language::Value* tile, const TilePages::Place& place = {});
  int k_transfers() const { return static_cast<int>(k_.lane_offsets.size()); }
  int v_transfers() const { return static_cast<int>(v_.lane_offsets.size()); }

  // Room behind the tiles for what a lane keeps (LdsPlan::merged_slots). Nobody else touches it.
  language::Value* kept_place() const;
  // Where those of the wave begin, uniform: a multiple of 256 bytes.
  language::Value* kept_wave() const;
  void keep(language::Value* place, int slot, language::Value* dwords, int byte_in_slot) const;
  language::Value* kept(language::Value* place, int slot) const;
  // 16 bytes a lane from memory into its own slot, of which the number is uniform; one DMA instruction of this wave.
  void fetch_kept(language::Value* slot, const language::Buffer& from, language::Value* lane_offset,
                  language::Value* uniform_offset) const;

  language::OperandA keys(int buffer, int key_block, int dim_block) override;
  language::OperandA values_transposed(int buffer, int dim_block, int key_block) override;
  // The same from a buffer that is known at run time only: where a lane's reads start in it, and the reads. These wait
  // for every transfer that is in flight.
  language::Value* values_start(language::Value* buffer);
  language::OperandA values_transposed(language::Value* start, int dim_block, int key_block);

 private:
  // One of K and V.
  struct Stream {
    Slice slice;
    int line_bytes;
    int row_bytes;
    int pieces;                                  // 64-element pieces of a row
    std::vector<language::Value*> lane_offsets;  // of each DMA instruction of this wave, [line group][piece]
    language::Value* lds_line;                   // this wave's first line, bytes
  };

  // Row of lane `slot`'s 16 bytes on line `line` of this wave: of the tile, or of its granule.
  language::Value* row_of(language::Value* slot, int line) const;
  Stream make_stream(const Slice& slice, int line_bytes, int head_dim);
  void fill(const Stream& stream, int region, int region_offset, language::Value* tile, const TilePages::Place& place);
  void gather(const Stream& stream, int region, int region_offset, language::Value* tile, language::Value* entries);
  // K and V where each key is looked up by itself.
  void gather_keys(int buffer, language::Value* tile, language::Value* entries);
  language::OperandA values_at(int region, language::Value* start, int offset, int dim_block, int key_block);
  // `entries`: of the tile, of keys in pages.
  void fill_tile(int buffer, language::Value* tile, const language::Values& entries);
  int kept_wave_bytes() const { return plan_.merged_slots * plan_.merged_slot_bytes / waves_; }
  // LDS regions, one alias scope each.
  static constexpr int k_region(int buffer) { return 2 * buffer; }
  static constexpr int v_region(int buffer) { return 2 * buffer + 1; }
  int kept_region() const { return 2 * plan_.buffers; }

  language::Kernel& kernel_;
  LdsPlan plan_;
  const language::MatrixUnit& matrix_;
  language::Lds lds_;
  int waves_;
  std::optional<KeyPages> pages_;  // before the streams, which ask for it
  std::optional<TilePages> tile_pages_;
  Stream k_;
  Stream v_;
  language::Value* k_read_;  // per lane: where its K fragments start
  language::Value* v_read_;
};

}  // namespace wavejit::attention
