// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A bias on its way to a score (docs/canonical-arithmetic.md, "Modifiers").
#pragma once

#include <llvm/IR/Intrinsics.h>

#include <bit>
#include <cstdint>
#include <numbers>

#include "codegen/language/kernel.h"
#include "templates/attention/kernel/types.h"

namespace wavejit::attention {

// x + bias · log2 e, where that is finite for every finite bias: −∞ alone hides a key. The least numbers of bf16 and
// f32 would not be: they become -0x1.62p127, the last that is. Against one so large no score shows, but −∞ and NaN do,
// by the other sum. As integers, where the least negative float is the largest: a maximum of floats would cost each one
// more instruction, which quiets NaN. fp16 has no such numbers.
inline language::Value* with_bias(language::Kernel& kernel, DataType type, language::Value* bias, language::Value* x) {
  llvm::IRBuilder<>& ir = kernel.ir();
  const auto fused = [&](language::Value* a, language::Value* b, language::Value* c) {
    return ir.CreateIntrinsic(llvm::Intrinsic::fma, {kernel.f32()}, {a, b, c});
  };
  if (type != DataType::fp16) {
    const auto least = std::bit_cast<std::uint32_t>(-0x1.62p127F);
    x = fused(bias, kernel.constant(0x1p-126F), x);
    language::Value* bits = ir.CreateBitCast(bias, ir.getInt32Ty());
    bits = ir.CreateBinaryIntrinsic(llvm::Intrinsic::umin, bits, ir.getInt32(least));
    bias = ir.CreateBitCast(bits, kernel.f32());
  }
  return fused(bias, kernel.constant(std::numbers::log2e_v<float>), x);
}

}  // namespace wavejit::attention
