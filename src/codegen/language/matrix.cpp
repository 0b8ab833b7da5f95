// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "codegen/language/matrix.h"

#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/IntrinsicsAMDGPU.h>

#include <algorithm>

#include "targets/matrix_mnemonic.h"

namespace wavejit::language {

Value* in_accumulation_registers(Kernel& kernel, Value* value) {
  // An empty instruction whose result is its operand. No memory and no effects: unused ones go.
  llvm::FunctionType* type = llvm::FunctionType::get(value->getType(), {value->getType()}, false);
  llvm::CallInst* call = kernel.ir().CreateCall(llvm::InlineAsm::get(type, "", "=a,0", false), {value});
  call->setMemoryEffects(llvm::MemoryEffects::none());
  return call;
}

MatrixUnit::MatrixUnit(Kernel& kernel, int m, int n, Element element) : kernel_(kernel), element_(element) {
  const auto& available = kernel.target().matrix;
  const auto found = std::ranges::find_if(available, [&](const targets::MatrixInstruction& row) {
    return row.m == m && row.n == n && row.element == element;
  });
  if (found == available.end()) {
    kernel.refuse(std::string(kernel.target().id) + " has no matrix instruction of " + std::to_string(m) + "x" +
                  std::to_string(n));
    instruction_.m = m;
    instruction_.n = n;
    instruction_.k = 8;
    return;
  }
  instruction_ = *found;
  intrinsic_ = llvm::Intrinsic::lookupIntrinsicID(instruction_.intrinsic);
  if (intrinsic_ == llvm::Intrinsic::not_intrinsic) {
    kernel.refuse("LLVM has no intrinsic " + std::string(instruction_.intrinsic));
    return;
  }
  if (kernel.target().matrix_form == targets::MatrixForm::wmma) {
    // The intrinsics of waves of 32 take any vector: halves, and integers in the place of bf16.
    llvm::Type* of_element = element == Element::bf16 ? kernel.i16() : llvm::Type::getHalfTy(kernel.context());
    operand_type_ = kernel.vector(of_element, instruction_.k_per_lane(kernel.target().wave_size));
    return;
  }
  operand_type_ = llvm::Intrinsic::getType(kernel.context(), intrinsic_)->getParamType(0);
}

OperandLayout MatrixUnit::operand_layout(KOrder order) const {
  const int wave_size = kernel_.target().wave_size;
  return {.rows = instruction_.m,
          .k_block = OperandLayout::slots_of(element_) * wave_size / instruction_.m,
          .wave_size = wave_size,
          .element = element_,
          .k_order = order};
}

AccumulatorLayout MatrixUnit::accumulator_layout() const {
  return {.rows = instruction_.m,
          .columns = instruction_.n,
          .wave_size = kernel_.target().wave_size,
          .row_block = kernel_.target().row_block};
}

Accumulator MatrixUnit::zeros() const {
  const AccumulatorLayout layout = accumulator_layout();
  return {llvm::Constant::getNullValue(kernel_.vector(kernel_.f32(), layout.registers())), layout};
}

Value* MatrixUnit::dwords_of(Value* dwords, int step) const {
  const int bytes = instruction_.k_per_lane(kernel_.target().wave_size) * targets::bytes_of(element_);
  const int per_step = bytes / 4;  // dwords
  if (per_step != OperandLayout::dwords) {
    llvm::SmallVector<int, 4> lanes;
    for (int index = 0; index < per_step; ++index) lanes.push_back(step * per_step + index);
    dwords = kernel_.ir().CreateShuffleVector(dwords, lanes);
  }
  return dwords;
}
Value* MatrixUnit::part(Value* dwords, int step) const {
  return kernel_.ir().CreateBitCast(dwords_of(dwords, step), operand_type_);
}

int MatrixUnit::steps() const { return operand_layout(KOrder::contiguous).k_block / instruction_.k; }

Accumulator MatrixUnit::mma(const OperandA& a, const OperandB& b, const Accumulator& c) const {
  Accumulator result = c;
  for (int step = 0; step < steps(); ++step) result = mma_step(a, b, result, step);
  return result;
}

bool MatrixUnit::fits(const OperandA& a, const OperandB& b, const Accumulator& c) const {
  if (a.layout != b.layout) {
    kernel_.refuse("mma: operand A holds " + a.layout.describe() + ", operand B holds " + b.layout.describe());
  } else if (a.layout != operand_layout(a.layout.k_order)) {
    kernel_.refuse("mma: the operands hold " + a.layout.describe() + ", the instruction takes " +
                   operand_layout(a.layout.k_order).describe());
  } else if (c.layout != accumulator_layout()) {
    kernel_.refuse("mma: the accumulator holds " + c.layout.describe() + ", the instruction takes " +
                   accumulator_layout().describe());
  }
  return !kernel_.refused();
}

Accumulator MatrixUnit::mma_step(const OperandA& a, const OperandB& b, const Accumulator& c, int step) const {
  if (!fits(a, b, c)) return c;
  Accumulator result = c;
  if (kernel_.target().matrix_form == targets::MatrixForm::wmma) {
    result.value = kernel_.ir().CreateIntrinsic(intrinsic_, {c.value->getType(), operand_type_},
                                                {part(a.value, step), part(b.value, step), c.value});
    return result;
  }
  Value* zero = kernel_.constant(0);
  result.value = kernel_.ir().CreateIntrinsic(intrinsic_, {},
                                              {part(a.value, step), part(b.value, step), c.value, zero, zero, zero});
  return result;
}

Accumulator MatrixUnit::step_apart(const OperandA& a, const OperandB& b, const Accumulator& c, int step,
                                   const char* pause) const {
  if (!fits(a, b, c)) return c;
  if (kernel_.target().matrix_form == targets::MatrixForm::wmma) {
    kernel_.refuse(std::string(kernel_.target().id) + " has no registers of accumulation");
    return c;
  }
  Accumulator result = c;
  Value* rows = dwords_of(a.value, step);
  Value* columns = dwords_of(b.value, step);
  llvm::FunctionType* type =
      llvm::FunctionType::get(c.value->getType(), {rows->getType(), columns->getType(), c.value->getType()}, false);
  const std::string line = pause + std::string(targets::mnemonic_of(instruction_.id)) + " $0, $1, $2, $0";
  llvm::CallInst* call =
      kernel_.ir().CreateCall(llvm::InlineAsm::get(type, line, "=a,v,v,0", true), {rows, columns, c.value});
  call->setMemoryEffects(llvm::MemoryEffects::none());
  result.value = call;
  return result;
}

Accumulator MatrixUnit::mma_step_apart(const OperandA& a, const OperandB& b, const Accumulator& c, int step) const {
  return step_apart(a, b, c, step, "");
}

Accumulator MatrixUnit::mma_apart_of_fresh(const OperandA& a, const OperandB& b, const Accumulator& c) const {
  Accumulator result = c;
  for (int step = 0; step < steps(); ++step) result = step_apart(a, b, result, step, "s_nop 1\n");
  return result;
}

Accumulator MatrixUnit::mma_apart(const OperandA& a, const OperandB& b, const Accumulator& c) const {
  Accumulator result = c;
  for (int step = 0; step < steps(); ++step) result = mma_step_apart(a, b, result, step);
  return result;
}

void MatrixUnit::begin_apart() const {
  kernel_.ir().CreateIntrinsic(llvm::Intrinsic::amdgcn_s_nop, {}, {kernel_.ir().getInt16(1)});
}

// One line for all, so that no accumulator is read before the pause.
void MatrixUnit::settle(std::span<Accumulator> accumulators) const {
  std::vector<llvm::Type*> types;
  Values values;
  std::string results;
  std::string operands;
  for (std::size_t i = 0; i < accumulators.size(); ++i) {
    types.push_back(accumulators[i].value->getType());
    values.push_back(accumulators[i].value);
    results += i == 0 ? "=a" : ",=a";
    operands += "," + std::to_string(i);
  }
  llvm::Type* all = types.size() == 1 ? types.front() : llvm::StructType::get(kernel_.context(), types);
  llvm::FunctionType* type = llvm::FunctionType::get(all, types, false);
  // 16 passes and 3 wait states at the most.
  llvm::CallInst* call =
      kernel_.ir().CreateCall(llvm::InlineAsm::get(type, "s_nop 15\n\ts_nop 3", results + operands, true), values);
  call->setMemoryEffects(llvm::MemoryEffects::none());
  for (std::size_t i = 0; i < accumulators.size(); ++i)
    accumulators[i].value = types.size() == 1 ? call : kernel_.ir().CreateExtractValue(call, static_cast<unsigned>(i));
}

}  // namespace wavejit::language
