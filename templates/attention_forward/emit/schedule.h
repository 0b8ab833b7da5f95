// The words that pipeline schedules are written in. A schedule is a table of steps; a walker (dualwave.cpp,
// interleaved.cpp) emits them in order. Tiles are counted from the tile t that the walk is at.
#pragma once

#include <cstdint>

namespace wavejit::attention_forward::schedule {

enum class Stream : std::uint8_t { none, keys, values };

// One tile of K or V.
struct Tile {
  Stream stream = Stream::none;
  int ahead = 0;
  // There may be no such tile: the last one is fetched instead.
  bool may_be_past_the_end = false;
};

enum class Product : std::uint8_t {
  none,
  scores,  // of tile t + 1, from its keys
  output,  // onto O, from the values and the weights of tile t
};

enum class Softmax : std::uint8_t {
  none,
  begin,   // tile t + 1: maximum, exponents of all weights, the first of the weights; O and l onto the new maximum
  finish,  // tile t: the rest of the weights, their sum onto l, all rounded and packed
};

}  // namespace wavejit::attention_forward::schedule
