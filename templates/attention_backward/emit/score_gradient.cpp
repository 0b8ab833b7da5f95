// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_backward/emit/score_gradient.h"

#include <llvm/IR/IntrinsicsAMDGPU.h>

#include "codegen/language/convert.h"
#include "templates/attention_backward/kernel/arguments.h"

namespace wavejit::attention_backward {

using language::Kernel;
using language::Value;
using language::Values;

Value* cap_rate(Kernel& kernel, const KernelWords& words) {
  if (!words.has(Modifier::softcap)) return nullptr;
  llvm::IRBuilder<>& ir = kernel.ir();
  Value* rate = kernel.argument_i32(offsetof(Arguments, scores) + offsetof(attention::ScoreArguments, softcap_rate));
  rate = ir.CreateBinaryIntrinsic(llvm::Intrinsic::umin, ir.CreateAnd(rate, ir.getInt32(0x7FFFFFFF)),
                                  ir.getInt32(0x7F7FFFFF));
  return ir.CreateBitCast(rate, kernel.f32());
}

Values cap_slopes(Kernel& kernel, const KernelWords& words, Value* rate, const language::Accumulator& raw) {
  if (!words.has(Modifier::softcap)) return {};
  llvm::IRBuilder<>& ir = kernel.ir();
  Values slopes;
  for (int r = 0; r < raw.layout.registers(); ++r) {
    Value* score = ir.CreateExtractElement(raw.value, static_cast<std::uint64_t>(r));
    Value* power = ir.CreateIntrinsic(llvm::Intrinsic::amdgcn_exp2, {kernel.f32()}, {ir.CreateFMul(score, rate)});
    Value* share =
        ir.CreateIntrinsic(llvm::Intrinsic::amdgcn_rcp, {kernel.f32()}, {ir.CreateFAdd(power, kernel.constant(1.0F))});
    Value* product = ir.CreateFMul(share, ir.CreateFSub(kernel.constant(1.0F), share));
    slopes.push_back(ir.CreateFMul(product, kernel.constant(4.0F)));
  }
  return slopes;
}

std::vector<language::OperandB> packed(Kernel& kernel, const language::MatrixUnit& matrix,
                                       const language::Accumulator& values) {
  std::vector<language::OperandB> operands;
  for (int first = 0; first < values.layout.registers(); first += 8) {
    const std::vector<Value*> dwords =
        language::convert_packed(kernel, values.value, first, 8, matrix.element(), language::NanInput::kept);
    operands.push_back(matrix.operand_b(language::gather_dwords(kernel, dwords), language::KOrder::accumulator_rows));
  }
  return operands;
}

}  // namespace wavejit::attention_backward
