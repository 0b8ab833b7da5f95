// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_backward/emit/row_numbers.h"

#include <llvm/IR/IntrinsicsAMDGPU.h>

#include <limits>
#include <numbers>

#include "codegen/language/convert.h"
#include "templates/attention_backward/kernel/arguments.h"

namespace wavejit::attention_backward {

using language::Kernel;
using language::Value;

namespace {
constexpr float infinity = std::numeric_limits<float>::infinity();
}

language::Buffer row_numbers(Kernel& kernel, std::size_t at, Value* batch, Value* head,
                             const attention::Sequence& sequence) {
  llvm::IRBuilder<>& ir = kernel.ir();
  const auto wide = [&](Value* value) { return ir.CreateZExt(value, kernel.i64()); };
  Value* base = kernel.argument_i64(at + offsetof(RowNumbersArgument, pointer));
  base = ir.CreateAdd(base,
                      ir.CreateMul(wide(batch), kernel.argument_i64(at + offsetof(RowNumbersArgument, batch_stride))));
  base =
      ir.CreateAdd(base, ir.CreateMul(wide(head), kernel.argument_i64(at + offsetof(RowNumbersArgument, head_stride))));
  base = ir.CreateAdd(base, ir.CreateShl(wide(sequence.query_start), 2));
  return {kernel, base, ir.CreateShl(sequence.query_length, 2)};
}

Value* shift_of(Kernel& kernel, Value* log_sum_exp) {
  llvm::IRBuilder<>& ir = kernel.ir();
  Value* shift = ir.CreateFMul(log_sum_exp, kernel.constant(-std::numbers::log2e_v<float>));
  shift = ir.CreateSelect(ir.CreateFCmpOEQ(shift, kernel.constant(infinity)), kernel.constant(-infinity), shift);
  return language::with_short_nan(kernel, shift);
}

Value* weight_of(Kernel& kernel, Value* score, Value* scale, Value* shift) {
  llvm::IRBuilder<>& ir = kernel.ir();
  Value* exponent = ir.CreateIntrinsic(llvm::Intrinsic::fma, {kernel.f32()}, {score, scale, shift});
  return ir.CreateIntrinsic(llvm::Intrinsic::amdgcn_exp2, {kernel.f32()}, {exponent});
}

}  // namespace wavejit::attention_backward
