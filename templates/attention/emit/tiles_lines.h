// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tiles in lines (lds_layout.h), filled by 16-byte LDS DMA, two buffers; V transposed by the read.
#pragma once

#include <memory>
#include <optional>

#include "templates/attention/emit/key_pages.h"
#include "templates/attention/emit/stream_lines.h"
#include "templates/attention/emit/streams_narrow.h"
#include "templates/attention/emit/tile_pages.h"
#include "templates/attention/emit/tiles.h"

namespace wavejit::attention {

class LineTiles final : public Tiles {
 public:
  LineTiles(language::Kernel& kernel, const TileShape& shape, const LdsPlan& plan, const KeyTensors& tensors,
            language::Value* lane_group, const language::MatrixUnit& matrix);
  // Its streams refer to it.
  LineTiles(const LineTiles&) = delete;
  LineTiles& operator=(const LineTiles&) = delete;

  language::Values start(const Stops& stops, const TileWalk& walk) override;
  language::Values advance(int buffer, const Stops& stops, const TileWalk& walk,
                           const language::Values& in_flight) override;
  language::Value* named() const override { return named_; }
  void advance_values(int buffer, const Stops& stops, const TileWalk& walk) override;
  // For a cache of 8 bits, else null: what is read of the streams comes through registers, which the pipeline moves.
  NarrowLines* narrow_keys() const { return narrow_k_.get(); }
  NarrowLines* narrow_values() const { return narrow_v_.get(); }
  LineStream& keys() override { return k_; }
  LineStream& values() override { return v_; }

  // For a pipeline that places waits and barriers itself: its streams, and of keys in pages of whole tiles the look-up
  // of a tile that they fetch.
  TilePages::Place look_up(language::Value* tile) const { return tile_pages_->look_up(tile, TilePages::Way::scalar); }
  // The first tile's unseen keys (unseen_keys.h), without which the pipeline fetches its values.
  language::Value* unseen_of(language::Value* tile) const;

  // Room behind the tiles for what a lane keeps (LdsPlan::merged_slots). Nobody else touches it.
  language::Value* kept_place() const;
  // Where those of the wave begin, uniform: a multiple of 256 bytes.
  language::Value* kept_wave() const;
  void keep(language::Value* place, int slot, language::Value* dwords, int byte_in_slot) const;
  language::Value* kept(language::Value* place, int slot) const;
  // 16 bytes a lane from memory into its own slot, of which the number is uniform; one DMA instruction of this wave.
  void fetch_kept(language::Value* slot, const language::Buffer& from, language::Value* lane_offset,
                  language::Value* uniform_offset) const;

 private:
  // `entries`: those of the tile, for keys that are looked up. `unseen`: see unseen_keys.h.
  void fill_tile(int buffer, language::Value* tile, language::Value* entries, language::Value* unseen = nullptr);
  int kept_wave_bytes() const { return plan_.merged_slots * plan_.merged_slot_bytes / waves_; }
  int kept_region() const { return 2 * plan_.buffers; }

  language::Kernel& kernel_;
  LdsPlan plan_;
  language::Lds lds_;
  int waves_;
  bool apart_;
  std::optional<KeyPages> pages_;  // before the streams, which ask for it
  std::optional<TilePages> tile_pages_;
  language::Value* named_ = nullptr;
  language::Value* first_seen_;
  LineStream k_;
  LineStream v_;
  std::unique_ptr<NarrowLines> narrow_k_;
  std::unique_ptr<NarrowLines> narrow_v_;
};

}  // namespace wavejit::attention
