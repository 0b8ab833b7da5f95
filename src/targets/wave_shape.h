// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How a wave of a target holds tiles: what emission means by lanes, rows and registers.
//
// Attention multiplies with the target's widest matrix instruction, which is square: a wave takes `rows` rows, and each
// lane owns one of them together with the lanes at the same place of the other groups. 64 lanes and 32x32 instructions:
//
//   row of a lane = lane % 32      group = lane / 32, one of 2      16 registers of an accumulator      16 dims a
//   fragment
#pragma once

#include <bit>

#include "targets/targets.h"

namespace wavejit::targets {

struct WaveShape {
  int lanes = 0;
  int rows = 0;           // m and n of the matrix instruction
  int operand_bytes = 0;  // that a lane holds of an operand fragment
  Element element = Element::bf16;

  // Lanes that share a row.
  constexpr int groups() const { return lanes / rows; }
  // Results of an accumulator that a lane holds.
  constexpr int registers() const { return rows * rows / lanes; }
  // Elements that a lane holds of an operand fragment, and how deep the fragment is: dims or keys.
  constexpr int slots() const { return operand_bytes / bytes_of(element); }
  constexpr int fragment_k() const { return slots() * groups(); }
  constexpr int fragment_bytes() const { return operand_bytes * groups(); }
  // group = lane >> row_bits
  constexpr int row_bits() const { return std::bit_width(static_cast<unsigned>(rows)) - 1; }
  constexpr bool operator==(const WaveShape&) const = default;
};

// The lanes that a transpose read (ds_read_b64_tr_b16) works on together: they take four rows of as many elements, and
// each lane gets one of the columns.
inline constexpr int transpose_lanes = 16;

// Every operand fragment is 16 bytes a lane, which is what LDS gives in one read.
inline constexpr int operand_fragment_bytes = 16;

constexpr WaveShape wave_shape(const Target& target) {
  const MatrixInstruction& widest = target.matrix.front();
  return {
      .lanes = target.wave_size, .rows = widest.m, .operand_bytes = operand_fragment_bytes, .element = widest.element};
}

}  // namespace wavejit::targets
