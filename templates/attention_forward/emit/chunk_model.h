// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What both models of schedules (dualwave_model.h, interleaved_model.h) know of chunks: where one begins, the maximum
// of the one before is aside, and l and O of the one before are merged before the next is added to them.
#pragma once

#include <string_view>

#include "templates/attention_forward/emit/schedule.h"

namespace wavejit::attention_forward::schedule {

// How a walk meets its chunks: tiles of one, and how many of the first chunk's come before the walk.
struct Chunks {
  int tiles = 1 << 20;
  int left_out = 0;

  constexpr bool begin_at(int tile) const { return tile > 0 && (tile + left_out) % tiles == 0; }
};

class ChunkModel {
 public:
  constexpr ChunkModel(const Chunks& chunks, int tiles) : chunks_(chunks), tiles_(tiles) {}

  // Each says what is wrong, or nothing. `begun`, `finished` and `outputs` are the model's.
  constexpr std::string_view end_part(int tile, int begun) {
    if (!ends_at(tile)) return {};
    if (begun != tile) return "puts a maximum aside that the last tile has not raised";
    if (aside_ != none) return "puts a maximum aside over one that is still needed";
    aside_ = tile;
    return {};
  }
  constexpr std::string_view begin(int tile) const {
    if (chunks_.begin_at(tile) && aside_ != tile - 1) return "begins a chunk with the maximum of the one before";
    return {};
  }
  constexpr bool begins_at(int tile) const { return chunks_.begin_at(tile); }
  constexpr std::string_view merge(Half half, int tile, int finished, int outputs) {
    if (!chunks_.begin_at(tile)) return {};
    if (aside_ != tile - 1) return "merges without a maximum that was put aside";
    if (outputs != tile) return "merges O before the chunk's last tile is in it";
    if (half != Half::second) {
      if (finished != tile - 1) return "merges l that has another chunk's weights, or not all";
      if (merged_sums_ == tile) return "merges l twice";
      merged_sums_ = tile;
      if (merged_[0] == tile) return "merges O twice";
      merged_[0] = tile;
    }
    if (half != Half::first) {
      if (merged_[1] == tile) return "merges O twice";
      merged_[1] = tile;
    }
    if (merged_[0] == tile && merged_[1] == tile) aside_ = none;
    return {};
  }
  constexpr std::string_view finish(int tile) const {
    if (chunks_.begin_at(tile) && merged_sums_ != tile) return "adds weights to the l of another chunk";
    return {};
  }
  constexpr std::string_view output(int tile) const {
    if (chunks_.begin_at(tile) && (merged_[0] != tile || merged_[1] != tile))
      return "adds values to the O of another chunk";
    return {};
  }
  constexpr std::string_view end() const {
    if (aside_ != none) return "the maximum of a chunk was put aside for nothing";
    return {};
  }

 private:
  static constexpr int none = -1;
  constexpr bool ends_at(int tile) const { return tile + 1 < tiles_ && chunks_.begin_at(tile + 1); }

  Chunks chunks_;
  int tiles_;
  int aside_ = none;  // the tile whose maximum it is
  int merged_sums_ = none;
  std::array<int, 2> merged_ = {none, none};
};

}  // namespace wavejit::attention_forward::schedule
