// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The words that pipeline schedules are written in, as far as they know nothing of what is computed.
//
// A schedule is a table of rows, a row a list of acts. A walker emits both in the order in which they stand, and moves
// nothing. Where a kernel must do things in another order, it has another table. A model replays each table when it is
// compiled.
//
// Tiles are counted from the tile t that the walk is at.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string_view>

namespace wavejit::attention::schedule {

enum class Stream : std::uint8_t { keys, values };

// One tile of K or V.
struct Tile {
  Stream stream = Stream::keys;
  int ahead = 0;
};
constexpr Tile keys(int ahead) { return {Stream::keys, ahead}; }
constexpr Tile values(int ahead) { return {Stream::values, ahead}; }

// ---- Acts of every pipeline

// The loads of a tile begin.
struct Fetch {
  Tile tile;
  // There may be no such tile: the last one is fetched instead.
  bool may_be_past_the_end = false;
};
// The block table's entry of a tile is on its way: every Fetch of the tile needs it. Past the last tile it is that of
// the last one. Nothing where keys are not in pages.
struct LookUp {
  // Scalar loads arrive in any order, and LDS reads are counted with them: while one is on its way, a wait for one LDS
  // read is a wait for all. A vector load takes a register, and arrives in order with those of tiles.
  enum class Way : std::uint8_t { scalar, vector };
  int ahead = 0;
  Way way = Way::scalar;
};
// A walk keeps the entries of tiles t … t + furthest_look_up.
inline constexpr int furthest_look_up = 4;
// A few items, at most `capacity`; it can be made and changed when it is compiled.
template <typename Item, std::size_t capacity>
class List {
 public:
  constexpr List() = default;
  constexpr List(std::initializer_list<Item> items) {
    for (const Item& item : items) add(item);
  }
  constexpr void add(const Item& item) { items_.at(size_++) = item; }

  constexpr Item* begin() { return items_.data(); }
  constexpr Item* end() { return items_.data() + size_; }
  constexpr const Item* begin() const { return items_.data(); }
  constexpr const Item* end() const { return items_.data() + size_; }
  constexpr std::size_t size() const { return size_; }

 private:
  std::array<Item, capacity> items_{};
  std::size_t size_ = 0;
};

// Rows of a schedule with `tiles` key tiles, as they are walked: take(row, t).
template <typename Schedule, typename Take>
constexpr void for_each_row(const Schedule& schedule, int tiles, Take take) {
  for (const auto& row : schedule.start) take(row, 0);
  for (const auto& row : schedule.prologue) take(row, -1);
  for (int tile = 0; tile < tiles - 1; ++tile)
    for (const auto& row : schedule.steady) take(row, tile);
  for (const auto& row : schedule.drain) take(row, tiles - 1);
}

// Which tiles' entries of the block table a walk has. They come in order.
class LookUps {
 public:
  // What is wrong, or nothing. `tile`: that of the walk.
  constexpr std::string_view look_up(int tile, int wanted, int cluster) {
    if (wanted != next_) return "looks tiles up out of order";
    if (wanted > tile + furthest_look_up) return "looks a tile up too early";
    ++next_;
    if (cluster != last_cluster_) before_ = wanted;
    last_cluster_ = cluster;
    return {};
  }
  // The first cluster has nothing to wait behind.
  constexpr std::string_view fetch(int tile, int wanted, int cluster) const {
    if (wanted >= next_) return "fetches a tile that was not looked up";
    if (wanted < tile) return "fetches a tile whose entry is gone";
    if (cluster != 0 && cluster == last_cluster_ && wanted >= before_) return "waits for a table's entry";
    return {};
  }

 private:
  int next_ = 0;    // tile
  int before_ = 0;  // `next_` before the last cluster that looked up
  int last_cluster_ = -1;
};

// What a model found wrong first, and in which row; an empty `what` is nothing.
struct Fault {
  std::string_view row;
  int tile = 0;
  std::string_view what;

  constexpr explicit operator bool() const { return !what.empty(); }
};

}  // namespace wavejit::attention::schedule
