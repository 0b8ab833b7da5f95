// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The matrix unit of a target: one instruction chosen from its row, and mma() that uses it.
#pragma once

#include <span>

#include "codegen/language/fragment.h"

namespace wavejit::language {

// `value` in registers of accumulation from here on, where a product reads an operand as well as from the others: for
// operands that stay, in a kernel whose other values take the other half. A copy, once.
Value* in_accumulation_registers(Kernel& kernel, Value* value);

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

  // ---- Accumulators in registers of accumulation, where they and the operands do not fit into the other half
  //
  // The backend chooses one half for all accumulators of a kernel and copies what does not fit. Here some are held in
  // the other half by the constraint of an assembler's line. The price: the backend does not know what it is, and
  // leaves out the wait states round it. Two facts close that:
  //
  //   operands from vector instructions   begin_apart() stands between those and the first product
  //   results                             settle() stands between the last product and whatever else reads them
  //
  // The simulated GPU's check of hazards knows both.

  // As mma_step.
  Accumulator mma_step_apart(const OperandA& a, const OperandB& b, const Accumulator& c, int step) const;
  Accumulator mma_apart(const OperandA& a, const OperandB& b, const Accumulator& c) const;
  // The same where vector instructions make an operand for this product alone, as those that widen 8 bits: the pause of
  // begin_apart() stands in the product's own line, because nothing else keeps such an instruction before it.
  Accumulator mma_apart_of_fresh(const OperandA& a, const OperandB& b, const Accumulator& c) const;
  void begin_apart() const;
  // The same accumulators, behind a pause as long as a product. They must be used by nothing else: an accumulator that
  // anything reads from the other half is kept there by the backend throughout.
  void settle(std::span<Accumulator> accumulators) const;

 private:
  Accumulator step_apart(const OperandA& a, const OperandB& b, const Accumulator& c, int step, const char* pause) const;
  Value* dwords_of(Value* dwords, int step) const;
  Value* part(Value* dwords, int step) const;
  bool fits(const OperandA& a, const OperandB& b, const Accumulator& c) const;

  Kernel& kernel_;
  Element element_;
  targets::MatrixInstruction instruction_;
  unsigned intrinsic_ = 0;
  llvm::Type* operand_type_ = nullptr;
};

}  // namespace wavejit::language
