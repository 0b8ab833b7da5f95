// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How much of the vector queue (emit/schedule.h) stands behind each matrix instruction of a product, as data. A slot is
// four cycles; an operation takes as many as it issues for.
#pragma once

#include <array>
#include <string_view>

#include "templates/attention_backward/kernel/spec.h"

namespace wavejit::attention_backward {

struct Ladder {
  std::string_view idea;
  // Slots behind a matrix instruction of scores, gradients, values, keys, queries.
  std::array<int, 5> behind = {};
  int reading = 0;     // of them what it takes to read a fragment, behind the first instruction of each
  int settling = 0;    // matrix instructions until the vector unit sees the last one's result
  int read_ahead = 4;  // fragments read from LDS before the matrix instructions that take them
  int turning = 2;     // fragments left when those behind a barrier are asked for
  int opening = 0;     // slots in front of a tile's first matrix instruction, whose fragments are on their way
};

// What it takes to ask memory for something, in slots: a descriptor's scalar work, a load, a fill of LDS, a write.
inline constexpr int address_slots = 12;
inline constexpr int load_slots = 2;
inline constexpr int fill_slots = 5;
inline constexpr int store_slots = 3;

// What operations take, in slots.
struct OperationSlots {
  int exp2 = 0;
  int convert = 0;  // a pair, rounded and packed
};

Ladder ladder_of(const QueryKernel& spec, const targets::Target& target);
Ladder ladder_of(const KeyKernel& spec, const targets::Target& target);
OperationSlots slots_of(const KernelWords& words, const targets::Target& target);

}  // namespace wavejit::attention_backward
