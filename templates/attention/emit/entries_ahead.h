// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a walk of tiles carries round its loop of entries that it looks up ahead (key_pages.h): those of the next tile.
// Of listed keys behind them which of the tile's own keys are named, and what the list says of the tile behind the
// next.
#pragma once

#include "templates/attention/emit/key_pages.h"
#include "templates/attention/emit/tile_walk.h"

namespace wavejit::attention {

class EntriesAhead {
 public:
  // `carried`: what the others returned.
  static language::Value* of_next(const language::Values& carried) { return carried.front(); }
  static language::Value* named(const language::Values& carried) { return carried[named_at]; }

  // The values of a walk whose first tile has `entries`.
  static language::Values at_start(const KeyPages& pages, const TileWalk& walk, const Stops& stops,
                                   language::Value* entries) {
    if (!pages.is_listed()) return {pages.entries(walk.tile_at(stops[1]))};
    return {pages.resolved(pages.listed(walk.tile_at(stops[1]))), pages.named(entries),
            pages.listed(walk.tile_at(stops[2]))};
  }
  // The values of the tile behind stops[0], from what that one had.
  static language::Values at(const KeyPages& pages, const TileWalk& walk, const Stops& stops,
                             const language::Values& before) {
    if (!pages.is_listed()) return {pages.entries(walk.tile_at(stops[2]))};
    return {pages.resolved(before[listed_at]), pages.named(of_next(before)),
            pages.listed(walk.tile_at(walk.ahead(stops[2].place, 1)))};
  }

 private:
  static constexpr std::size_t named_at = 1;
  static constexpr std::size_t listed_at = 2;
};

}  // namespace wavejit::attention
