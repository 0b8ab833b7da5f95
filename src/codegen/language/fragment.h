// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Fragments: what one wave holds of a matrix, with the lane layout in the type.
//
// A matrix instruction reads operands A (m × k) and B (k × n) and accumulates into m × n. Which element of which row a
// lane holds is a property of the hardware, and mixing two of these layouts up is the classic silent bug. Here A, B
// and accumulators are different C++ types, and each carries the rest of its layout as a value that mma() compares; a
// mismatch is refused with both layouts named.
//
// An operand fragment is 16 bytes a lane: eight 16-bit elements, a block of k that one wide matrix instruction or
// several narrow ones consume. For 32x32 instructions over 64 lanes a block is 16 deep:
//
//   A: row = lane % 32, k slots 8·(lane / 32) … + 7          B: the same with columns
//
// A dot product does not care in which order its k runs as long as both operands agree, so the order is part of the
// layout: which logical k stands in slot j of lane group g.
#pragma once

#include <string>

#include "codegen/language/kernel.h"

namespace wavejit::language {

using targets::Element;

enum class KOrder : std::uint8_t {
  // slot j of group g holds k = slots · g + j: rows that stand contiguous in memory.
  contiguous,
  // The order in which an accumulator holds its rows, in blocks of b (AccumulatorLayout::row_block): slot j of group g
  // holds k = b·groups·(j / b) + b·g + j % b. The result of one product becomes an operand of the next without moving
  // between lanes. MFMA has blocks of four; with WMMA's of eight, as many as a lane has slots, both orders are one.
  accumulator_rows,
};

struct OperandLayout {
  int rows = 0;     // m of A, n of B
  int k_block = 0;  // depth of the fragment
  int wave_size = 0;
  Element element = Element::fp16;
  KOrder k_order = KOrder::contiguous;

  static constexpr int dwords = 4;
  // Elements that a lane holds.
  static constexpr int slots_of(Element element) { return dwords * 4 / targets::bytes_of(element); }
  constexpr int groups() const { return wave_size / rows; }
  constexpr bool operator==(const OperandLayout&) const = default;
  std::string describe() const;
};

// `value` is <4 x i32>; elements stand in order from the low half of dword 0.
struct OperandA {
  Value* value = nullptr;
  OperandLayout layout;
};
struct OperandB {
  Value* value = nullptr;
  OperandLayout layout;
};

// m × n results in f32. Column = lane % n; register r of lane group g is row  block·groups·(r / block) + block·g +
// r % block, with the target's blocks: 4 rows for MFMA, 8 for WMMA.
struct AccumulatorLayout {
  int rows = 0;
  int columns = 0;
  int wave_size = 0;
  int row_block = 4;

  constexpr int registers() const { return rows * columns / wave_size; }
  constexpr int groups() const { return wave_size / columns; }
  // Row of register r in lane group 0; lane group g is row_block · g below it.
  constexpr int row_of_register(int r) const { return row_block * groups() * (r / row_block) + r % row_block; }
  constexpr bool operator==(const AccumulatorLayout&) const = default;
  std::string describe() const;
};

// `value` is <registers x float>.
struct Accumulator {
  Value* value = nullptr;
  AccumulatorLayout layout;
};

}  // namespace wavejit::language
