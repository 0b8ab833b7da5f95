// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention/emit/cache_scale.h"

#include "codegen/language/control.h"
#include "templates/attention/kernel/cache_scale_arguments.h"

namespace wavejit::attention {

using language::Kernel;
using language::Value;
using language::Values;

Value* cache_scale(Kernel& kernel, std::size_t at, Value* batch, Value* kv_head) {
  llvm::IRBuilder<>& ir = kernel.ir();
  Value* numbers = kernel.argument_i64(at + offsetof(CacheScale, numbers));
  const auto step = [&](Value* index, std::size_t stride) {
    return ir.CreateMul(ir.CreateZExt(index, kernel.i64()), kernel.argument_i64(at + stride));
  };
  const Values scale =
      language::if_uniform(kernel, ir.CreateIsNotNull(numbers), language::Likelihood::even,
                           {llvm::cast<Value>(kernel.constant(1.0F))}, [&](const Values&) {
                             Value* address = ir.CreateAdd(numbers, step(batch, offsetof(CacheScale, batch_stride)));
                             address = ir.CreateAdd(address, step(kv_head, offsetof(CacheScale, head_stride)));
                             return Values{kernel.load_scalar(address, kernel.f32())};
                           });
  return kernel.uniform(scale.front());
}

Value* with_key_scale(Kernel& kernel, Value* number, Value* key_scale) {
  llvm::IRBuilder<>& ir = kernel.ir();
  Value* product = ir.CreateFMul(ir.CreateBitCast(number, kernel.f32()), key_scale);
  return kernel.uniform(ir.CreateBitCast(product, kernel.i32()));
}

}  // namespace wavejit::attention
