// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Integers of rows and keys.
#pragma once

#include <llvm/IR/Intrinsics.h>

#include "codegen/language/kernel.h"

namespace wavejit::attention {

inline language::Value* minimum(language::Kernel& kernel, language::Value* a, language::Value* b) {
  return kernel.ir().CreateBinaryIntrinsic(llvm::Intrinsic::smin, a, b);
}

inline language::Value* maximum(language::Kernel& kernel, language::Value* a, language::Value* b) {
  return kernel.ir().CreateBinaryIntrinsic(llvm::Intrinsic::smax, a, b);
}

// floor(value · multiplier / 2³²)
inline constexpr int dword_bits = 32;
inline language::Value* high_half(language::Kernel& kernel, language::Value* value, language::Value* multiplier) {
  llvm::IRBuilder<>& ir = kernel.ir();
  language::Value* product = ir.CreateMul(ir.CreateZExt(value, kernel.i64()), ir.CreateZExt(multiplier, kernel.i64()));
  return ir.CreateTrunc(ir.CreateLShr(product, dword_bits), kernel.i32());
}

// `value` divided by what the multiplier was made for: ceil(2³² / divisor), where 0 stands for 2³².
inline language::Value* divided(language::Kernel& kernel, language::Value* value, language::Value* multiplier) {
  llvm::IRBuilder<>& ir = kernel.ir();
  language::Value* high = high_half(kernel, value, multiplier);
  return ir.CreateSelect(ir.CreateICmpEQ(multiplier, kernel.constant(0)), value, high);
}

}  // namespace wavejit::attention
