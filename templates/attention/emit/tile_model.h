// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a schedule does with tiles, replayed when it is compiled: fetched, waited for, read, and overwritten by none who
// still reads. It knows nothing of what is computed; a pipeline's model adds that (a family's emit/).
//
// Two ways of staging, as tiles.h has them:
//
//   BufferedTiles   LDS DMA into the other of two buffers, or the next of three. A fetch is counted; a wait retires the
//   oldest. A buffer may
//                   be read, and filled again, when all waves have come far enough
//   WrittenTiles    loads into registers, written to the one buffer, which a barrier makes whole
//
// Each step says what is wrong, or nothing.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "templates/attention/emit/schedule.h"

namespace wavejit::attention::schedule {

inline constexpr int no_tile = -1;

// ---- Two buffers
// -----------------------------------------------------------------------------------------------------

enum class Arrival : std::uint8_t {
  nothing,    // never filled
  in_flight,  // parts of it may still be on their way
  awaited,    // this wave's part is there
  ready,      // all parts are: any wave may read it in the next cluster
};

struct BufferState {
  int tile = no_tile;
  Arrival arrival = Arrival::nothing;

  constexpr bool operator==(const BufferState&) const = default;
};

// Time is counted in clusters, each of which ends in a barrier. Cluster 0 is the start, which all waves leave together.
class BufferedTiles {
 public:
  // `groups_apart`: a second group of waves runs one cluster behind the first, so that a wave knows of the others what
  // they did up to two clusters before its own.
  constexpr BufferedTiles(int tiles, bool groups_apart, int buffers = 2)
      : tiles_(tiles), groups_apart_(groups_apart), buffers_(buffers) {}

  // `tile`: that of the walk.
  constexpr std::string_view fetch(int now, int tile, const Fetch& fetch) {
    const int wanted = tile + fetch.tile.ahead;
    if (wanted >= tiles_ && !fetch.may_be_past_the_end) return "fetches a tile past the end";
    if (const std::string_view wrong = look_ups_.fetch(tile, wanted, now); !wrong.empty()) return wrong;
    Contents& into = buffer(fetch.tile.stream, wanted);
    if (into.last_read > left_by_all(now)) return "overwrites what another wave may still read";
    into.batch = static_cast<int>(batches_.size());
    batches_.push_back({.tile = std::min(wanted, tiles_ - 1)});
    return {};
  }
  constexpr std::string_view look_up(int now, int tile, const LookUp& look) {
    return look_ups_.look_up(tile, tile + look.ahead, now);
  }
  constexpr std::string_view read(int now, int tile, const Tile& what) {
    const int wanted = tile + what.ahead;
    Contents& from = buffer(what.stream, wanted);
    if (from.batch == never) return "reads a buffer that was never filled";
    const Batch& batch = batches_[index_of(from.batch)];
    if (batch.tile != wanted) return "reads another tile than the buffer holds";
    if (!ready_in(batch, now)) return "reads what another wave may not have waited for";
    from.last_read = now;
    return {};
  }
  // All fetches but the `left` youngest have landed.
  constexpr void wait(int now, int left) {
    for (; in_flight() > left; ++retired_) batches_[index_of(retired_)].awaited = now;
  }
  constexpr int in_flight() const { return static_cast<int>(batches_.size()) - retired_; }

  // Buffer `which` of a stream behind the barrier that ends the cluster.
  constexpr BufferState state(int now, Stream stream, std::size_t which) const {
    const Contents& contents = contents_[of(stream)][which];
    if (contents.batch == never) return {};
    const Batch& batch = batches_[index_of(contents.batch)];
    return {.tile = batch.tile,
            .arrival = ready_in(batch, now + 1) ? Arrival::ready
                       : batch.awaited != never ? Arrival::awaited
                                                : Arrival::in_flight};
  }

 private:
  static constexpr int never = -1;

  // A fetch of one tile.
  struct Batch {
    int tile = 0;
    int awaited = never;  // the cluster whose wait retires it
  };
  // What stands in one LDS buffer.
  struct Contents {
    int batch = never;      // the last that went there
    int last_read = never;  // cluster
  };

  static constexpr std::size_t index_of(int number) { return static_cast<std::size_t>(number); }
  static constexpr std::size_t of(Stream stream) { return stream == Stream::keys ? 0 : 1; }
  constexpr Contents& buffer(Stream stream, int tile) { return contents_[of(stream)][index_of(tile % buffers_)]; }
  // The latest cluster that all waves, of either group, have left when some wave is in cluster `n`.
  constexpr int left_by_all(int n) const { return groups_apart_ ? std::max(n - 2, 0) : n - 1; }
  constexpr bool ready_in(const Batch& batch, int n) const {
    return batch.awaited != never && batch.awaited <= left_by_all(n);
  }

  int tiles_;
  bool groups_apart_;
  int buffers_;
  LookUps look_ups_;
  std::vector<Batch> batches_;  // in order; the first `retired_` have landed
  int retired_ = 0;
  std::array<std::array<Contents, 3>, 2> contents_{};  // of each stream, tile t in buffer t mod their number
};

// ---- One buffer, through registers
// -----------------------------------------------------------------------------------

// Which tile is where.
struct WrittenPlaces {
  int in_flight = no_tile;  // in registers, or on the way there
  int lds = no_tile;        // whole, for all waves, once the row is over

  constexpr bool operator==(const WrittenPlaces&) const = default;
};

// All waves may stand anywhere between two barriers, so nothing reads what its row writes.
class WrittenTiles {
 public:
  constexpr explicit WrittenTiles(int tiles) : tiles_(tiles) {}

  constexpr void begin_row() {
    written_.reset();
    read_.reset();
  }
  // `row`: its number, `tile`: that of the walk.
  constexpr std::string_view fetch(int row, int tile, const Fetch& fetch) {
    const int wanted = tile + fetch.tile.ahead;
    if (wanted >= tiles_ && !fetch.may_be_past_the_end) return "fetches a tile past the end";
    if (const std::string_view wrong = look_ups_.fetch(tile, wanted, row); !wrong.empty()) return wrong;
    if (places(fetch.tile.stream).in_flight != no_tile) return "fetches into registers that are not written yet";
    places(fetch.tile.stream).in_flight = wanted;
    return {};
  }
  constexpr std::string_view look_up(int row, int tile, const LookUp& look) {
    return look_ups_.look_up(tile, tile + look.ahead, row);
  }
  constexpr std::string_view read(int tile, const Tile& what) {
    if (places(what.stream).lds != tile + what.ahead) return "reads another tile than stands in LDS";
    read_ = what;
    return {};
  }
  constexpr std::string_view write(int tile, const Tile& what) {
    if (read_ && read_->stream == what.stream) return "writes what other waves still read";
    int& in_flight = places(what.stream).in_flight;
    if (in_flight != tile + what.ahead) return "writes another tile than it fetched";
    in_flight = no_tile;
    written_ = what;
    return {};
  }
  // The barrier.
  constexpr void end_row(int tile) {
    if (written_) places(written_->stream).lds = tile + written_->ahead;
  }
  constexpr const WrittenPlaces& of(Stream stream) const { return places_[stream == Stream::keys ? 0 : 1]; }

 private:
  constexpr WrittenPlaces& places(Stream stream) { return places_[stream == Stream::keys ? 0 : 1]; }

  int tiles_;
  LookUps look_ups_;
  std::array<WrittenPlaces, 2> places_{};
  std::optional<Tile> read_;
  std::optional<Tile> written_;
};

}  // namespace wavejit::attention::schedule
