// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The words that pipeline schedules are written in.
//
// A schedule is a table of rows, a row a list of acts. A walker (dualwave.cpp, interleaved.cpp) emits both in the order
// in which they stand, and moves nothing. Where a kernel must do things in another order, it has another table. A model
// (dualwave_model.h, interleaved_model.h) replays each table when it is compiled.
//
// Tiles are counted from the tile t that the walk is at.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string_view>

namespace wavejit::attention_forward::schedule {

enum class Stream : std::uint8_t { keys, values };

// One tile of K or V.
struct Tile {
  Stream stream = Stream::keys;
  int ahead = 0;
};
constexpr Tile keys(int ahead) { return {Stream::keys, ahead}; }
constexpr Tile values(int ahead) { return {Stream::values, ahead}; }

enum class Product : std::uint8_t {
  none,
  scores,  // of tile t + 1, from its keys
  output,  // onto O, from the values and the weights of tile t
};

enum class Softmax : std::uint8_t {
  none,
  begin,   // tile t + 1: maximum, exponents of all weights, the first of the weights
  finish,  // tile t: the rest of the weights, their sum onto l, all rounded and packed
};

// Acts that more than one pipeline has.

// The loads of a tile begin.
struct Fetch {
  Tile tile;
  // There may be no such tile: the last one is fetched instead.
  bool may_be_past_the_end = false;
};
// The loads of what a tile's modifiers read from memory begin: the bias. Nothing in a kernel without one.
struct LoadModifiers {
  int ahead = 0;
};
// A tile's scores pass their modifiers and the mask.
struct Modify {
  int ahead = 0;
};
// O and l go onto the maximum that `Softmax::begin` found.
struct Rescale {};

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

// What a model found wrong first, and in which row; an empty `what` is nothing.
struct Fault {
  std::string_view row;
  int tile = 0;
  std::string_view what;

  constexpr explicit operator bool() const { return !what.empty(); }
};

}  // namespace wavejit::attention_forward::schedule
