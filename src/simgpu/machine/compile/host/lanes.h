// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Arithmetic on a group of lanes, as IR. Bit for bit what the interpreter's kernels compute, as long as there is no
// NaN. A value that must be a number is named to `require_number`; a group in which such a value is NaN is interpreted
// instead.
#pragma once

#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/ADT/SmallVector.h>

#include <utility>

#include "simgpu/machine/compile/host/emitter.h"

namespace wavejit::simgpu::compile {

class Lanes {
 public:
  explicit Lanes(Emitter& emitter);

  using Value = llvm::Value;
  llvm::IRBuilder<>& ir;
  const Host host;
  llvm::FixedVectorType* const integers;
  llvm::FixedVectorType* const floats;
  llvm::FixedVectorType* const bits;  // i1: a lane mask

  Value* splat(std::uint32_t word) { return llvm::ConstantInt::get(integers, word); }
  Value* splat(float value) { return llvm::ConstantFP::get(floats, value); }
  Value* as_float(Value* v) { return v->getType() == floats ? v : ir.CreateBitCast(v, floats); }
  Value* as_bits(Value* v) { return v->getType() == integers ? v : ir.CreateBitCast(v, integers); }

  // float32; NaN in is NaN out
  Value* add(Value* a, Value* b) { return arithmetic(ir.CreateFAdd(a, b), {a, b}); }
  Value* subtract(Value* a, Value* b) { return arithmetic(ir.CreateFSub(a, b), {a, b}); }
  Value* multiply(Value* a, Value* b) { return arithmetic(ir.CreateFMul(a, b), {a, b}); }
  Value* fused(Value* a, Value* b, Value* c);
  Value* minimum(Value* a, Value* b) { return extreme(a, b, false); }
  Value* maximum(Value* a, Value* b) { return extreme(a, b, true); }
  Value* exp2(Value* x);
  Value* reciprocal(Value* x);
  Value* to_half(Value* x);       // 16 bits in a word
  Value* to_bfloat(Value* x);     // likewise
  Value* from_half(Value* word);  // of the lower 16 bits; exact, NaN too

  Value* truth(std::uint8_t table, Value* a, Value* b, Value* c);
  Value* permute_bytes(Value* high, Value* low, Value* select);

  void require_number(Value* value);
  // The group's arithmetic is the interpreter's unless this is true anywhere.
  void reject_where(Value* mask) { rejected_.push_back(mask); }
  // i1, or null when nothing can go wrong.
  Value* rejected();

 private:
  Value* arithmetic(Value* result, std::initializer_list<Value*> sources);
  Value* extreme(Value* a, Value* b, bool larger);
  Value* flushed(Value* x);

  llvm::SmallPtrSet<Value*, 32> numbers_;    // numbers, once the checks below hold
  llvm::SmallVector<Value*, 32> unchecked_;  // NaN exactly where the check must fail
  llvm::SmallVector<Value*, 8> rejected_;
};

}  // namespace wavejit::simgpu::compile
