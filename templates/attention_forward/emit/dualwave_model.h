// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The dual-wave schedule as a model: two groups of waves walk the table one cluster apart, DMA lands as late as the
// waits allow, and every read must find its tile whole, every DMA a buffer that nobody still reads.
//
// It replays a table act by act and keeps what each LDS buffer holds after each row. What becomes of tiles is
// templates/attention/emit/tile_model.h's half; here stands what is computed of them. dualwave_schedule.cpp asks it
// when it is compiled, tests/templates/dualwave_schedule_test.cpp with tables that are wrong.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>
#include <variant>
#include <vector>

#include "templates/attention/emit/tile_model.h"
#include "templates/attention_forward/emit/chunk_model.h"
#include "templates/attention_forward/emit/dualwave_schedule.h"

namespace wavejit::attention_forward::dualwave {

using schedule::Arrival;
using schedule::BufferState;
using schedule::no_tile;

// The state after a row's barrier, as a wave of the first group sees it.
struct RowState {
  std::string_view row;
  int tile = 0;
  std::array<BufferState, 3> keys;  // tile t in buffer t mod their number
  std::array<BufferState, 3> values;
  int fetches_in_flight = 0;
};

class Model {
 public:
  constexpr Model(int tiles, bool stagger, const schedule::Chunks& chunks = {})
      : tiles_(tiles), stagger_(stagger), chunks_(chunks, tiles), staged_(tiles, stagger) {}

  constexpr schedule::Fault run(const Schedule& schedule) {
    staged_ = schedule::BufferedTiles(tiles_, stagger_, schedule.buffers);
    buffers_ = static_cast<std::size_t>(schedule.buffers);
    schedule::for_each_row(schedule, tiles_, [&](const Cluster& cluster, int tile) {
      if (fault_) return;
      row_ = name_of(cluster);
      tile_ = tile;
      std::visit([&](const auto& row) { take(row); }, cluster);
      keep_state();
      ++now_;
    });
    row_ = "the end";
    require(staged_.in_flight() == 0, "a DMA is still on its way");
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

  constexpr void take(const Memory& cluster) {
    waited_ = false;
    first_act_ = true;
    for (const MemoryAct& act : cluster.acts) {
      require(!waited_, "does more after its wait");
      std::visit([&](const auto& each) { perform(each); }, act);
      first_act_ = false;
    }
    require(waited_, "does not wait for its LDS reads");
  }

  constexpr void perform(const Fetch& fetch) { right(staged_.fetch(now_, tile_, fetch)); }
  constexpr void perform(const LookUp& look) { right(staged_.look_up(now_, tile_, look)); }
  constexpr void perform(const Read& read) {
    right(staged_.read(now_, tile_, read.tile));
    std::optional<Tile>& into = fragments(read.tile.stream);
    require(!into, "reads over fragments that are still needed");
    // Two buffers are of kernels whose registers hold one tile.
    require(buffers_ > 2 || (!keys_read_ && !values_read_), "reads over fragments that are still needed");
    into = read.tile;
  }

  constexpr void perform(const Modify& modify) {
    require(scores_ == tile_ + modify.ahead && modified_ == scores_ - 1, "modifies scores that are not there");
    require(modifiers_ == tile_ + modify.ahead, "modifies with what was not read");
    modifiers_.reset();
    modified_ = scores_;
  }

  constexpr void perform(const Wait& wait) {
    waited_ = true;
    if (wait.fetches_left == Wait::all) return;
    // One counter has them all; a Modify before this has waited for its own.
    require(!modifiers_, "counts modifiers that are on their way as a fetch");
    staged_.wait(now_, wait.fetches_left);
  }

  constexpr void take(const Compute& cluster) {
    for (const ComputeAct& act : cluster.acts) std::visit([&](const auto& each) { perform(each); }, act);
    for (const ComputeAct& act : cluster.behind) {
      require(std::holds_alternative<Rescale>(act) || std::holds_alternative<EndPart>(act) ||
                  std::holds_alternative<Rest>(act),
              "does more behind its barrier than a wave does for itself");
      std::visit([&](const auto& each) { perform(each); }, act);
    }
    require(!keys_read_ && !values_read_, "leaves fragments that were read");
    require(!rest_, "leaves operations of a softmax");
    require(!grown_ || tile_ < 0, "leaves O and l on the old maximum");
    grown_ = false;
  }

  constexpr void perform(const Overlap& overlap) {
    if (overlap.softmax == Softmax::finish) {
      right(chunks_.finish(tile_));
      require(begun_ == tile_ && finished_ == tile_ - 1, "finishes weights that are not begun");
      finished_ = tile_;
    }
    if (overlap.product == Product::output) {
      require(values_read_ && values_read_->ahead == 0, "multiplies other values");
      require(finished_ == tile_ && outputs_ == tile_, "weights are not packed, or O is not at this tile");
      right(chunks_.output(tile_));
      outputs_ = tile_ + 1;
      values_read_.reset();
    }
    if (overlap.softmax == Softmax::begin) {
      require(modified_ == tile_ + 1 && begun_ == tile_, "begins without modified scores");
      right(chunks_.begin(tile_ + 1));
      require(outputs_ == tile_ + 1 && finished_ == tile_, "begins before O and l hold the tile before");
      begun_ = tile_ + 1;
      grown_ = true;
      rest_ = buffers_ > 2;
    }
    if (overlap.product == Product::scores) {
      require(keys_read_ && keys_read_->ahead == 1, "multiplies other keys");
      require(scores_ == tile_ && begun_ == tile_, "scores of the tile before are still needed");
      scores_ = tile_ + 1;
      keys_read_.reset();
    }
  }

  // Asking for a tile reads what was not read.
  constexpr void perform(const ReadWalk&) {}

  constexpr void perform(const LoadModifiers& load) {
    require(!modifiers_, "reads modifiers over those that are still needed");
    modifiers_ = tile_ + load.ahead;
  }

  constexpr void perform(const Rest&) {
    require(rest_, "has no operations of a softmax left");
    rest_ = false;
  }

  constexpr void perform(const Rescale&) {
    require(grown_, "rescales without a new maximum");
    grown_ = false;
  }

  constexpr void perform(const EndPart& end) { right(chunks_.end_part(tile_ + end.ahead, begun_)); }
  constexpr void perform(const Merge& merge) {
    right(chunks_.merge(merge.half, tile_, finished_, outputs_));
    if (!merge.apart) return;
    require(first_act_, "merges in clusters of its own behind other acts");
    // They touch no tile.
    if (chunks_.begins_at(tile_)) now_ += 2;
  }

  constexpr std::optional<Tile>& fragments(Stream stream) { return stream == Stream::keys ? keys_read_ : values_read_; }

  constexpr void keep_state() {
    RowState state{.row = row_, .tile = tile_, .keys = {}, .values = {}, .fetches_in_flight = staged_.in_flight()};
    for (std::size_t each = 0; each < buffers_; ++each) {
      state.keys[each] = staged_.state(now_, Stream::keys, each);
      state.values[each] = staged_.state(now_, Stream::values, each);
    }
    rows_.push_back(state);
  }

  int tiles_;
  bool stagger_;
  std::size_t buffers_ = 2;
  schedule::ChunkModel chunks_;
  schedule::BufferedTiles staged_;
  schedule::Fault fault_;
  std::vector<RowState> rows_;
  int now_ = 0;  // cluster
  std::string_view row_;
  int tile_ = 0;
  bool first_act_ = false;  // of a memory row
  bool waited_ = false;
  // Fragments in registers.
  std::optional<Tile> keys_read_;
  std::optional<Tile> values_read_;
  bool rest_ = false;             // of three buffers: what a softmax began is not all written
  std::optional<int> modifiers_;  // of which tile's scores they are on their way
  // The arithmetic: the last tile that has come so far.
  int scores_ = -1;
  int modified_ = -1;
  int begun_ = -1;
  int finished_ = -1;
  int outputs_ = 0;  // tiles in O
  bool grown_ = false;
};

// The first fault at 1 to `most` tiles, with the stagger and without.
constexpr schedule::Fault fault_of(const Schedule& schedule, int most, const schedule::Chunks& chunks = {}) {
  for (int tiles = 1; tiles <= most; ++tiles)
    for (const bool stagger : {true, false})
      if (const schedule::Fault fault = Model(tiles, stagger, chunks).run(schedule)) return fault;
  return {};
}

}  // namespace wavejit::attention_forward::dualwave
