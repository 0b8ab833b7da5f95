// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The scale of scores, once for every kernel (docs/canonical-arithmetic.md).
#pragma once

#include <llvm/IR/Intrinsics.h>

#include "codegen/language/kernel.h"

namespace wavejit::attention {

// `scale`: the bits of scale · log2 e, as the kernel's arguments have them. A negative scale is a positive one with the
// query negated: exact, and the maximum of the scores stays a maximum. A zero scale becomes the smallest normal number:
// every product with a finite score vanishes in 2⁰ = 1 all the same, while −inf · c stays −inf for masked keys. What
// comes back are bits too: all of it in scalar registers.
inline language::Value* positive_scale(language::Kernel& kernel, language::Value* scale) {
  llvm::IRBuilder<>& ir = kernel.ir();
  return ir.CreateBinaryIntrinsic(llvm::Intrinsic::umax, ir.CreateAnd(scale, ir.getInt32(0x7FFFFFFF)),
                                  ir.getInt32(0x00800000));
}

// For a dword of elements of Q, by xor: all their sign bits where the scale is negative, else 0.
inline constexpr std::uint32_t signs_of_two = 0x80008000;
inline constexpr std::uint32_t signs_of_four = 0x80808080;
inline language::Value* query_sign(language::Kernel& kernel, language::Value* scale,
                                   std::uint32_t signs = signs_of_two) {
  constexpr int sign_bit = 31;
  llvm::IRBuilder<>& ir = kernel.ir();
  return ir.CreateAnd(ir.CreateAShr(scale, kernel.constant(sign_bit)), ir.getInt32(signs));
}

}  // namespace wavejit::attention
