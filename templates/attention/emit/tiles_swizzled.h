// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tiles through registers, one buffer each: swizzled (lds_layout.h), K by rows and V transposed; or, of caches of 8
// bits and of scattered elements, in lines where the target has those.
#pragma once

#include <memory>
#include <optional>

#include "templates/attention/emit/streams_swizzled.h"
#include "templates/attention/emit/tiles.h"

namespace wavejit::attention {

class SwizzledTiles final : public Tiles {
 public:
  SwizzledTiles(language::Kernel& kernel, const TileShape& shape, const LdsPlan& plan, const KeyTensors& tensors,
                language::Value* lane_group, const language::MatrixUnit& matrix);
  // Its streams refer to it.
  SwizzledTiles(const SwizzledTiles&) = delete;
  SwizzledTiles& operator=(const SwizzledTiles&) = delete;

  language::Values start(const Stops& stops, const TileWalk& walk) override;
  language::Values advance(int buffer, const Stops& stops, const TileWalk& walk,
                           const language::Values& in_flight) override;
  language::Value* named() const override { return named_; }
  SwizzledStream& keys() override { return *k_; }
  SwizzledStream& values() override { return *v_; }

  // For a pipeline that places waits and barriers itself: its streams, and of keys in pages of whole tiles the look-up
  // of a tile that they fetch.
  TilePages::Place look_up(language::Value* tile, TilePages::Way way) const { return tile_pages_->look_up(tile, way); }
  // The first tile's unseen keys (unseen_keys.h), without which the pipeline fetches its values.
  language::Value* unseen_of(language::Value* tile) const;

 private:
  // The whole tile at a place, whose keys have `entries` where they are looked up. `unseen`: unseen_keys.h.
  language::Values load(const Stop& stop, const TileWalk& walk, language::Value* entries,
                        language::Value* unseen = nullptr);

  // The tile at a place on its way through as few registers as may be: K is in LDS before V is asked for.
  void move(const Stop& stop, const TileWalk& walk, language::Value* entries);
  language::Values advance_late(const Stops& stops, const TileWalk& walk, const language::Values& entries);

  language::Kernel& kernel_;
  bool late_;
  language::Lds lds_;
  std::optional<KeyPages> pages_;  // before the streams, which ask for it
  std::optional<TilePages> tile_pages_;
  language::Value* first_seen_;
  language::Value* named_ = nullptr;
  std::unique_ptr<SwizzledStream> k_;
  std::unique_ptr<SwizzledStream> v_;
};

}  // namespace wavejit::attention
