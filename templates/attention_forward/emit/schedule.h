// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the acts of this family's pipelines compute, for their schedules; loads, look-ups and lists are in
// templates/attention/emit/schedule.h. The walkers are dualwave.cpp and interleaved.cpp, the models dualwave_model.h
// and interleaved_model.h.
#pragma once

#include <cstdint>

#include "templates/attention/emit/schedule.h"

namespace wavejit::attention_forward::schedule {

using namespace attention::schedule;

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

// The loads of what a tile's modifiers read from memory begin: the bias. Nothing in a kernel without one.
struct LoadModifiers {
  int ahead = 0;
};
// What a walk in memory has at a place is on its way, a scalar load: a wait for LDS reads waits for it, too. What was
// not read ahead is read where it is asked for. Nothing where a walk does not stand in memory.
struct ReadWalk {
  int ahead = 0;
};
// A tile's scores pass their modifiers and the mask.
struct Modify {
  int ahead = 0;
};
// O and l go onto the maximum that `Softmax::begin` found, but where its tile begins a chunk.
struct Rescale {};

// Which part of O an act takes.
enum class Half : std::uint8_t { first, second, both };
// What the chunk before tile t left is merged with the chunks before it, where tile t begins a chunk: a half of O, and
// l with the first one. They are zeros then. Nothing elsewhere.
struct Merge {
  Half half = Half::both;
  // In two clusters of its own where it does something: what was merged before is on its way in the first, and merged
  // in the second. Each ends in a barrier.
  bool apart = false;
};
// Where a tile is the last of its chunk and another follows, its maximum is put aside and the next tile begins without
// one. Nothing elsewhere.
struct EndPart {
  int ahead = 0;
};

}  // namespace wavejit::attention_forward::schedule
