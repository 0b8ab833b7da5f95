// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Products of integers of 8 bits with sums in 32, which are exact: in whatever order they are added, the bits are the
// same. Of 32 rows by 32 columns.
//
// An operand is 16 bytes a lane, as a row of half as many 16-bit elements would be read: lane group h has the bytes 16h
// … 16h + 15 of a block of 32. Where an instruction is 16 deep it takes half of them at a time; which k stands in
// which slot is the same in both operands, and nothing else matters.
#pragma once

#include "codegen/language/fragment.h"
#include "targets/integer_matrix_shape.h"

namespace wavejit::language {

// `value` is <registers x i32>, with the places of an Accumulator.
struct IntegerSums {
  Value* value = nullptr;
  AccumulatorLayout layout;
};

class IntegerMatrix {
 public:
  static constexpr int rows = targets::integer_matrix_rows;
  static constexpr int k_block = targets::integer_operand_k;  // of an operand

  // Refuses where the target has no such instruction.
  explicit IntegerMatrix(Kernel& kernel);

  IntegerSums zeros() const;
  // c + a · b; operands are <4 x i32>.
  IntegerSums mma(Value* a, Value* b, const IntegerSums& c) const;
  // The same numbers in f32: exact below 2²⁴.
  Accumulator floats(const IntegerSums& sums) const;

 private:
  Kernel& kernel_;
};

}  // namespace wavejit::language
