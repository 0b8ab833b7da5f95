// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The matrix unit of a target: one instruction chosen from its row, and mma() that uses it.
#pragma once

#include "codegen/language/fragment.h"

namespace wavejit::language {

class MatrixUnit {
 public:
  // The widest instruction of the target with this tile shape; refuses when the row has none or when LLVM names none
  // for it.
  MatrixUnit(Kernel& kernel, int m, int n, Element element);

  Element element() const { return element_; }
  const targets::MatrixInstruction& instruction() const { return instruction_; }
  OperandLayout operand_layout(KOrder order) const;
  AccumulatorLayout accumulator_layout() const;

  OperandA operand_a(Value* dwords, KOrder order) const { return {dwords, operand_layout(order)}; }
  OperandB operand_b(Value* dwords, KOrder order) const { return {dwords, operand_layout(order)}; }
  // Zeros cost nothing: a first product takes them as an inline constant.
  Accumulator zeros() const;

  // c + a · b over one k block. A block that is deeper than the instruction is walked from slot 0 upward: the first
  // slots of every lane group first.
  Accumulator mma(const OperandA& a, const OperandB& b, const Accumulator& c) const;
  // The same in single instructions, 0 … steps() − 1 in order, for pipelines that put other work between them.
  Accumulator mma_step(const OperandA& a, const OperandB& b, const Accumulator& c, int step) const;
  int steps() const;

 private:
  Value* part(Value* dwords, int step) const;

  Kernel& kernel_;
  Element element_;
  targets::MatrixInstruction instruction_;
  unsigned intrinsic_ = 0;
  llvm::Type* operand_type_ = nullptr;
};

}  // namespace wavejit::language
