// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A bias on its way to a score (docs/canonical-arithmetic.md, "Modifiers").
#pragma once

#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/IntrinsicsAMDGPU.h>

#include <bit>
#include <cstdint>
#include <numbers>

#include "codegen/language/kernel.h"
#include "codegen/language/synchronize.h"
#include "templates/attention/kernel/types.h"

namespace wavejit::attention {

// The largest number whose product with log2 e is finite.
inline constexpr std::uint32_t largest_natural = std::bit_cast<std::uint32_t>(0x1.62p127F);

// What biases of a tile are held below, in a scalar register of which the compiler knows nothing: with its negative it
// is both limits of one instruction, where two constants would be two registers, one of them each lane's. `hide`:
// language::opaque where no register is left to keep it in.
inline language::Value* limit_of_bias(language::Kernel& kernel, DataType type,
                                      language::Value* (*hide)(language::Kernel&, language::Value*)) {
  if (type == DataType::fp16) return nullptr;  // which has no such numbers
  return kernel.ir().CreateBitCast(hide(kernel, kernel.ir().getInt32(largest_natural)), kernel.f32());
}

// x + bias · log2 e, where that is finite for every finite bias: −∞ alone hides a key. The least and the greatest
// numbers of bf16 and f32 would not be: they become ±0x1.62p127, the last that are. Against one so large no score
// shows, but ±∞ and NaN do, by the other sum: of NaN the median is a limit.
inline language::Value* with_bias(language::Kernel& kernel, language::Value* bias, language::Value* limit,
                                  language::Value* x) {
  llvm::IRBuilder<>& ir = kernel.ir();
  const auto fused = [&](language::Value* a, language::Value* b, language::Value* c) {
    return ir.CreateIntrinsic(llvm::Intrinsic::fma, {kernel.f32()}, {a, b, c});
  };
  if (limit != nullptr) {
    x = fused(bias, kernel.constant(0x1p-126F), x);
    bias = ir.CreateIntrinsic(llvm::Intrinsic::amdgcn_fmed3, {kernel.f32()}, {bias, limit, ir.CreateFNeg(limit)});
  }
  return fused(bias, kernel.constant(std::numbers::log2e_v<float>), x);
}

// What slopes are held below: times log2 e and a distance below 2^31 it is finite, so that a negative slope of any size
// leaves the farthest key all of the weight. Scores below 2^28 do not show beside it.
inline constexpr std::uint32_t largest_slope = std::bit_cast<std::uint32_t>(0x1p96F);

// A slope on its way there: −slope · log2 e, finite for every slope but NaN, since a key on the diagonal is 0 away.
inline language::Value* minus_slope_log2(language::Kernel& kernel, language::Value* slope) {
  constexpr std::uint32_t sign = 0x80000000;
  constexpr std::uint32_t infinity = 0x7F800000;
  llvm::IRBuilder<>& ir = kernel.ir();
  language::Value* bits = ir.CreateBitCast(slope, kernel.i32());
  language::Value* size = ir.CreateAnd(bits, ir.getInt32(~sign));
  language::Value* limited = ir.CreateBinaryIntrinsic(llvm::Intrinsic::umin, size, ir.getInt32(largest_slope));
  limited = ir.CreateOr(limited, ir.CreateAnd(bits, ir.getInt32(sign)));
  bits = ir.CreateSelect(ir.CreateICmpULE(size, ir.getInt32(infinity)), limited, bits);
  return ir.CreateFMul(ir.CreateBitCast(bits, kernel.f32()), kernel.constant(-std::numbers::log2e_v<float>));
}

}  // namespace wavejit::attention
