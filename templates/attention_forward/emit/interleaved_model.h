// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The interleaved schedule as a model. All waves may stand anywhere between two barriers, so within one step nothing
// may read what the step writes; loads leave and reach their registers in order; each tile's arithmetic comes in order.
//
// It replays a table act by act and keeps what stands where after each row. What becomes of tiles is
// templates/attention/emit/tile_model.h's half; here stands what is computed of them. interleaved_schedule.cpp asks it
// when it is compiled, tests/templates/interleaved_schedule_test.cpp with tables that are wrong.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <variant>
#include <vector>

#include "templates/attention/emit/tile_model.h"
#include "templates/attention_forward/emit/chunk_model.h"
#include "templates/attention_forward/emit/interleaved_schedule.h"

namespace wavejit::attention_forward::interleaved {

using schedule::no_tile;
using Places = schedule::WrittenPlaces;

// The state after a row's barrier.
struct RowState {
  std::string_view row;
  int tile = 0;
  Places keys;
  Places values;
};

class Model {
 public:
  constexpr explicit Model(int tiles, const schedule::Chunks& chunks = {})
      : tiles_(tiles), chunks_(chunks, tiles), staged_(tiles) {}

  constexpr schedule::Fault run(const Schedule& schedule) {
    schedule::for_each_row(schedule, tiles_, [&](const Step& step, int tile) {
      if (fault_) return;
      take(step, tile);
      rows_.push_back(
          {.row = step.name, .tile = tile, .keys = staged_.of(Stream::keys), .values = staged_.of(Stream::values)});
    });
    row_ = "the end";
    require(outputs_ == tiles_, "tiles are missing in O");
    require(!modifiers_, "a tile's modifiers were read for nothing");
    right(chunks_.end());
    return fault_;
  }
  constexpr const std::vector<RowState>& rows() const { return rows_; }

 private:
  constexpr void right(std::string_view what) { require(what.empty(), what); }
  constexpr void require(bool holds, std::string_view what) {
    if (!holds && !fault_) fault_ = {.row = row_, .tile = tile_, .what = what};
  }
  constexpr int row_number() const { return static_cast<int>(rows_.size()); }

  constexpr void take(const Step& step, int tile) {
    row_ = step.name;
    tile_ = tile;
    staged_.begin_row();
    read_.reset();
    overlapped_ = false;
    for (const Act& act : step.acts) std::visit([&](const auto& each) { perform(each); }, act);
    require(overlapped_, "does nothing");
    require(!grown_ || tile < 0, "leaves O and l on the old maximum");
    grown_ = false;
    staged_.end_row(tile);
  }

  constexpr void perform(const Fetch& fetch) { right(staged_.fetch(row_number(), tile_, fetch)); }
  constexpr void perform(const LookUp& look) { right(staged_.look_up(row_number(), tile_, look)); }

  constexpr void perform(const Read& read) {
    right(staged_.read(tile_, read.tile));
    require(!read_ && !overlapped_, "reads for no product");
    read_ = read.tile;
  }

  constexpr void perform(const Modify& modify) {
    require(scores_ == tile_ + modify.ahead && modified_ == scores_ - 1, "modifies scores that are not there");
    require(modifiers_ == tile_ + modify.ahead, "modifies with what was not read");
    modifiers_.reset();
    modified_ = scores_;
  }

  constexpr void perform(const LoadModifiers& load) {
    require(!modifiers_, "reads modifiers over those that are still needed");
    modifiers_ = tile_ + load.ahead;
  }

  constexpr void perform(const Overlap& overlap) {
    require(!overlapped_, "overlaps twice");
    overlapped_ = true;
    if (overlap.write) right(staged_.write(tile_, *overlap.write));
    if (overlap.product == Product::none) require(!read_, "reads for no product");
    if (overlap.product == Product::scores) {
      require(read_ && read_->stream == Stream::keys && read_->ahead == 1, "multiplies other keys");
      require(scores_ == tile_ && begun_ == tile_, "scores of the tile before are still needed");
    }
    if (overlap.softmax == Softmax::finish) {
      right(chunks_.finish(tile_));
      require(begun_ == tile_ && finished_ == tile_ - 1, "finishes weights that are not begun");
      finished_ = tile_;
    }
    if (overlap.product == Product::output) {
      require(read_ && read_->stream == Stream::values && read_->ahead == 0, "multiplies other values");
      require(finished_ == tile_ && outputs_ == tile_, "weights are not packed, or O is not at this tile");
      right(chunks_.output(tile_));
      outputs_ = tile_ + 1;
    }
    if (overlap.softmax == Softmax::begin) {
      require(modified_ == tile_ + 1 && begun_ == tile_, "begins without modified scores");
      right(chunks_.begin(tile_ + 1));
      require(outputs_ == tile_ + 1 && finished_ == tile_, "begins before O and l hold the tile before");
      begun_ = tile_ + 1;
      grown_ = true;
    }
    if (overlap.product == Product::scores) scores_ = tile_ + 1;
  }

  constexpr void perform(const Rescale&) {
    require(grown_, "rescales without a new maximum");
    grown_ = false;
  }

  constexpr void perform(const EndPart& end) { right(chunks_.end_part(tile_ + end.ahead, begun_)); }
  constexpr void perform(const Merge& merge) { right(chunks_.merge(merge.half, tile_, finished_, outputs_)); }

  int tiles_;
  schedule::ChunkModel chunks_;
  schedule::WrittenTiles staged_;
  schedule::Fault fault_;
  std::vector<RowState> rows_;
  std::optional<int> modifiers_;  // of which tile's scores they are on their way
  // The arithmetic: the last tile that has come so far.
  int scores_ = -1;
  int modified_ = -1;
  int begun_ = -1;
  int finished_ = -1;
  int outputs_ = 0;  // tiles in O
  bool grown_ = false;
  // Within a row.
  std::string_view row_;
  int tile_ = 0;
  std::optional<Tile> read_;
  bool overlapped_ = false;
};

// The first fault at 1 to `most` tiles.
constexpr schedule::Fault fault_of(const Schedule& schedule, int most, const schedule::Chunks& chunks = {}) {
  for (int tiles = 1; tiles <= most; ++tiles)
    if (const schedule::Fault fault = Model(tiles, chunks).run(schedule)) return fault;
  return {};
}

}  // namespace wavejit::attention_forward::interleaved
