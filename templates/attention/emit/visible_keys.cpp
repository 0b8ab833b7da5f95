// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention/emit/visible_keys.h"

#include "templates/attention/emit/integers.h"

namespace wavejit::attention {

using language::Kernel;
using language::Value;

Value* first_visible_key(Kernel& kernel, const WindowFields& window, Value* diagonal) {
  Value* begin = kernel.ir().CreateSub(diagonal, kernel.argument_i32(window.left));
  return maximum(kernel, begin, kernel.constant(0));
}

KeyRange visible_keys(Kernel& kernel, const WindowFields& window, Value* diagonal, Value* keys) {
  llvm::IRBuilder<>& ir = kernel.ir();
  Value* begin = ir.CreateSub(diagonal, kernel.argument_i32(window.left));
  Value* end = ir.CreateAdd(ir.CreateAdd(diagonal, kernel.argument_i32(window.right)), kernel.constant(1));
  return {.begin = maximum(kernel, begin, kernel.constant(0)), .end = minimum(kernel, end, keys)};
}

KeyLimits key_limits(Kernel& kernel, Mask mask, bool wants_diagonal, const DiagonalFields& diagonal,
                     const WindowFields& window, const Sequence& sequence) {
  llvm::IRBuilder<>& ir = kernel.ir();
  KeyLimits limits = {};
  if (mask != Mask::none || wants_diagonal) limits.diagonal = diagonal_offset(kernel, diagonal, sequence);
  if (mask != Mask::none) limits.to_limit = limits.diagonal;
  if (mask == Mask::window) {
    limits.to_limit = ir.CreateAdd(limits.diagonal, kernel.argument_i32(window.right));
    limits.to_begin = ir.CreateSub(limits.diagonal, kernel.argument_i32(window.left));
  }
  return limits;
}

}  // namespace wavejit::attention
