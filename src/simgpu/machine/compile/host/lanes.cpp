// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/machine/compile/host/lanes.h"

#include <llvm/IR/IntrinsicsX86.h>

#include <algorithm>

#include "simgpu/machine/numerics/transcendental.h"

namespace wavejit::simgpu::compile {

using llvm::Value;

Lanes::Lanes(Emitter& emitter)
    : ir(emitter.ir),
      host(emitter.host),
      integers(llvm::FixedVectorType::get(ir.getInt32Ty(), host.lanes)),
      floats(llvm::FixedVectorType::get(ir.getFloatTy(), host.lanes)),
      bits(llvm::FixedVectorType::get(ir.getInt1Ty(), host.lanes)) {}

// A result of arithmetic is checked instead of what went into it.
Value* Lanes::arithmetic(Value* result, std::initializer_list<Value*> sources) {
  for (Value* const source : sources) {
    const auto found = std::ranges::find(unchecked_, source);
    if (found != unchecked_.end()) unchecked_.erase(found);
  }
  unchecked_.push_back(result);
  numbers_.insert(result);
  return result;
}

void Lanes::require_number(Value* value) {
  if (numbers_.insert(value).second) unchecked_.push_back(value);
}

Value* Lanes::rejected() {
  Value* any = nullptr;
  const auto also = [&](Value* mask) { any = any == nullptr ? mask : ir.CreateOr(any, mask); };
  for (std::size_t i = 0; i < unchecked_.size(); i += 2) {
    also(ir.CreateFCmpUNO(unchecked_[i], unchecked_[std::min(i + 1, unchecked_.size() - 1)]));
  }
  for (Value* const mask : rejected_) also(mask);
  if (any == nullptr) return nullptr;
  Value* const word = ir.CreateBitCast(any, ir.getIntNTy(host.lanes));
  return ir.CreateICmpNE(word, llvm::Constant::getNullValue(word->getType()));
}

Value* Lanes::fused(Value* a, Value* b, Value* c) {
  return arithmetic(ir.CreateIntrinsic(llvm::Intrinsic::fma, {floats}, {a, b, c}), {a, b, c});
}

// Zeros are ordered by their signs; equal numbers other than zeros have equal bits.
Value* Lanes::extreme(Value* a, Value* b, bool larger) {
  require_number(a);
  require_number(b);
  Value* const first = larger ? ir.CreateFCmpOGT(a, b) : ir.CreateFCmpOLT(a, b);
  Value* const different = ir.CreateSelect(first, a, b);
  Value* const both = larger ? ir.CreateAnd(as_bits(a), as_bits(b)) : ir.CreateOr(as_bits(a), as_bits(b));
  Value* const result = ir.CreateSelect(ir.CreateFCmpOEQ(a, b), as_float(both), different);
  numbers_.insert(result);
  return result;
}

Value* Lanes::flushed(Value* x) {
  Value* const word = as_bits(x);
  Value* const small = ir.CreateICmpEQ(ir.CreateAnd(word, splat(0x7f800000U)), splat(0U));
  return as_float(ir.CreateSelect(small, ir.CreateAnd(word, splat(0x80000000U)), word));
}

// numerics/transcendental.h, exp2_f32, step by step: the same operations in the same order.
Value* Lanes::exp2(Value* x) {
  require_number(x);
  const auto wide = llvm::FixedVectorType::get(ir.getDoubleTy(), host.lanes);
  Value* const whole = ir.CreateUnaryIntrinsic(llvm::Intrinsic::roundeven, x);
  Value* const f = ir.CreateFPExt(ir.CreateFSub(x, whole), wide);
  Value* sum = nullptr;
  for (const double coefficient : numerics::exp2_coefficients) {
    Value* const constant = llvm::ConstantFP::get(wide, coefficient);
    sum = sum == nullptr ? constant : ir.CreateIntrinsic(llvm::Intrinsic::fma, {wide}, {sum, f, constant});
  }
  Value* const power = ir.CreateShl(as_bits(ir.CreateFAdd(whole, splat(numerics::exp2_whole))), splat(23U));
  Value* const moved = as_float(ir.CreateAdd(as_bits(ir.CreateFPTrunc(sum, floats)), power));
  Value* const inside = ir.CreateSelect(ir.CreateFCmpOLT(x, splat(-126.0F)), splat(0.0F), moved);
  Value* const result = ir.CreateSelect(ir.CreateFCmpOGE(x, splat(128.0F)), as_float(splat(0x7f800000U)), inside);
  numbers_.insert(result);
  return result;
}

Value* Lanes::reciprocal(Value* x) {
  require_number(x);
  Value* const result = flushed(ir.CreateFDiv(splat(1.0F), flushed(x)));
  numbers_.insert(result);
  return result;
}

Value* Lanes::to_half(Value* x) {
  require_number(x);
  const auto halves = llvm::FixedVectorType::get(ir.getHalfTy(), host.lanes);
  const auto words = llvm::FixedVectorType::get(ir.getInt16Ty(), host.lanes);
  return ir.CreateZExt(ir.CreateBitCast(ir.CreateFPTrunc(x, halves), words), integers);
}

Value* Lanes::to_bfloat(Value* x) {
  require_number(x);
  Value* const word = as_bits(x);
  Value* const odd = ir.CreateAnd(ir.CreateLShr(word, splat(16U)), splat(1U));
  return ir.CreateLShr(ir.CreateAdd(ir.CreateAdd(word, splat(0x7fffU)), odd), splat(16U));
}

Value* Lanes::from_half(Value* word) {
  const auto halves = llvm::FixedVectorType::get(ir.getHalfTy(), host.lanes);
  const auto words = llvm::FixedVectorType::get(ir.getInt16Ty(), host.lanes);
  return ir.CreateFPExt(ir.CreateBitCast(ir.CreateTrunc(word, words), halves), floats);
}

Value* Lanes::truth(std::uint8_t table, Value* a, Value* b, Value* c) {
  if (host.has_avx512) {
    return ir.CreateIntrinsic(llvm::Intrinsic::x86_avx512_pternlog_d_512, {}, {a, b, c, ir.getInt32(table)});
  }
  Value* result = splat(0U);
  for (unsigned row = 0; row < 8; ++row) {
    if (((table >> row) & 1U) == 0) continue;
    Value* const term =
        ir.CreateAnd(ir.CreateAnd((row & 4U) != 0 ? a : ir.CreateNot(a), (row & 2U) != 0 ? b : ir.CreateNot(b)),
                     (row & 1U) != 0 ? c : ir.CreateNot(c));
    result = ir.CreateOr(result, term);
  }
  return result;
}

// Selectors below 8: 0..3 a byte of the low word, 4..7 of the high one. The others (signs and constants) are left to
// the interpreter.
Value* Lanes::permute_bytes(Value* high, Value* low, Value* select) {
  reject_where(ir.CreateICmpNE(ir.CreateAnd(select, splat(0xf8f8f8f8U)), splat(0U)));
  // The host's shuffle counts bytes within 16, and gives zero where bit 7 is set.
  llvm::SmallVector<llvm::Constant*, 16> places;
  for (unsigned lane = 0; lane < host.lanes; ++lane) places.push_back(ir.getInt32(0x01010101U * 4 * (lane % 4)));
  Value* const place = ir.CreateOr(ir.CreateAnd(select, splat(0x03030303U)), llvm::ConstantVector::get(places));
  Value* const from_high = ir.CreateShl(ir.CreateAnd(select, splat(0x04040404U)), splat(5U));
  const auto bytes = llvm::FixedVectorType::get(ir.getInt8Ty(), 4 * host.lanes);
  const auto shuffle = host.lanes == 16 ? llvm::Intrinsic::x86_avx512_pshuf_b_512 : llvm::Intrinsic::x86_avx2_pshuf_b;
  const auto shuffled = [&](Value* words, Value* control) {
    return ir.CreateBitCast(
        ir.CreateIntrinsic(shuffle, {}, {ir.CreateBitCast(words, bytes), ir.CreateBitCast(control, bytes)}), integers);
  };
  Value* const low_control = ir.CreateOr(place, from_high);
  return ir.CreateOr(shuffled(low, low_control), shuffled(high, ir.CreateXor(low_control, splat(0x80808080U))));
}

}  // namespace wavejit::simgpu::compile
