// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which lane and register holds which element (docs/isa.md; AMD's matrix instruction calculator describes the same
// layouts).
//
//   A and B: row of A = column of B = lane % m, block = lane / m % blocks, k = k_per_lane * (lane / m / blocks) + i.
//            8-bit operands of the f8f6f4 instructions come in two runs of 16 k, half the instruction's k apart.
//   C and D: column = lane % m;
//            m = 32: row = 8*(r/4 % 4) + 4*(lane/32) + r%4, block = r/16
//            m = 16: row = 4*(lane/16) + r%4, block = r/4          (float64: row = 4*r + lane/16)
//            m =  4: row = r, block = lane/4                       (float64: row = lane/16, block = lane/4 % 4)
#pragma once

#include "simgpu/machine/matrix/matrix_kernel.h"

namespace wavejit::simgpu::matrix {

struct Place {
  unsigned index;  // row of A, column of B
  unsigned block;
  unsigned k;
};
struct ResultPlace {
  unsigned row;
  unsigned column;
  unsigned block;
};

// Element `i` of a lane's A or B registers.
constexpr Place source_place(const Shape& shape, unsigned lane, unsigned i, bool two_runs) {
  const unsigned group = lane / shape.m / shape.blocks;
  const unsigned per_lane = shape.k_per_lane();
  unsigned k = per_lane * group + i;
  if (two_runs) k = 16 * group + (i % 16) + (i / 16) * (shape.k / 2u);
  return {lane % shape.m, lane / shape.m % shape.blocks, k};
}

constexpr ResultPlace result_place(const Shape& shape, unsigned lane, unsigned r) {
  const unsigned column = lane % shape.m;
  if (shape.a == Element::f64) {
    if (shape.m == 16) return {4 * r + lane / 16, column, 0};
    return {lane / 16, column, lane / 4 % 4};
  }
  if (shape.m == 32) return {8 * (r / 4 % 4) + 4 * (lane / 32) + r % 4, column, r / 16};
  if (shape.m == 16) return {4 * (lane / 16) + r % 4, column, r / 4};
  return {r, column, lane / 4};
}

}  // namespace wavejit::simgpu::matrix
