// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Signed integers of rows and keys.
#pragma once

#include <llvm/IR/Intrinsics.h>

#include "codegen/language/kernel.h"

namespace wavejit::attention_forward {

inline language::Value* minimum(language::Kernel& kernel, language::Value* a, language::Value* b) {
  return kernel.ir().CreateBinaryIntrinsic(llvm::Intrinsic::smin, a, b);
}

inline language::Value* maximum(language::Kernel& kernel, language::Value* a, language::Value* b) {
  return kernel.ir().CreateBinaryIntrinsic(llvm::Intrinsic::smax, a, b);
}

}  // namespace wavejit::attention_forward
