// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "codegen/language/convert.h"

#include <llvm/IR/IntrinsicsAMDGPU.h>

namespace wavejit::language {
namespace {

constexpr int bf16_bits = 16;
constexpr int byte_bits = 8;

// Round to nearest even in integers: add just under half of the last kept bit, and the last kept bit itself to break
// ties toward even. Patterns above 0x7FFF7FFF (NaNs with a long payload) carry into the sign and come out as a zero.
Value* rounded_bf16_bits(Kernel& kernel, Value* bits) {
  llvm::IRBuilder<>& ir = kernel.ir();
  Value* last_kept = ir.CreateAnd(ir.CreateLShr(bits, kernel.constant(bf16_bits)), kernel.constant(1));
  return ir.CreateAdd(ir.CreateAdd(bits, last_kept), kernel.constant(0x7FFF));
}

Value* emulated_bf16_pair(Kernel& kernel, Value* pair, NanInput nan) {
  llvm::IRBuilder<>& ir = kernel.ir();
  Value* values[2];
  Value* is_nan[2] = {};
  Value* bits[2];
  for (std::uint64_t i = 0; i < 2; ++i) {
    values[i] = ir.CreateExtractElement(pair, i);
    if (nan == NanInput::kept) is_nan[i] = ir.CreateFCmpUNO(values[i], values[i]);
  }
  for (std::uint64_t i = 0; i < 2; ++i) bits[i] = rounded_bf16_bits(kernel, ir.CreateBitCast(values[i], kernel.i32()));
  // A NaN that arithmetic produced is quiet: its upper half is a NaN as it stands.
  for (std::uint64_t i = 0; i < 2; ++i)
    if (is_nan[i]) bits[i] = ir.CreateSelect(is_nan[i], ir.CreateBitCast(values[i], kernel.i32()), bits[i]);
  // v_perm_b32: selector bytes 0–3 name the second source, 4–7 the first.
  return ir.CreateIntrinsic(llvm::Intrinsic::amdgcn_perm, {}, {bits[1], bits[0], ir.getInt32(0x07060302)});
}

// An operation each: the conversion takes its byte out of the dword, and the sign with it.
std::array<Value*, 2> floats_of_integers(Kernel& kernel, Value* dword, int half) {
  llvm::IRBuilder<>& ir = kernel.ir();
  std::array<Value*, 2> floats;
  for (std::size_t i = 0; i < floats.size(); ++i) {
    const int first_bit = ((2 * half) + static_cast<int>(i)) * byte_bits;
    Value* byte = ir.CreateTrunc(ir.CreateLShr(dword, kernel.constant(first_bit)), ir.getInt8Ty());
    floats[i] = ir.CreateSIToFP(byte, kernel.f32());
  }
  return floats;
}

bool has_substitute(const Kernel& kernel) { return !kernel.target().packed_bf16_convert; }

}  // namespace

Value* with_short_nan(Kernel& kernel, Value* value) {
  if (!has_substitute(kernel)) return value;
  llvm::IRBuilder<>& ir = kernel.ir();
  return ir.CreateSelect(ir.CreateFCmpUNO(value, value), llvm::ConstantFP::getNaN(kernel.f32()), value);
}

Value* convert_pair(Kernel& kernel, Value* pair, Element element, NanInput nan) {
  llvm::IRBuilder<>& ir = kernel.ir();
  if (element == Element::bf16 && has_substitute(kernel)) return emulated_bf16_pair(kernel, pair, nan);
  llvm::Type* scalar =
      element == Element::bf16 ? llvm::Type::getBFloatTy(kernel.context()) : llvm::Type::getHalfTy(kernel.context());
  return ir.CreateBitCast(ir.CreateFPTrunc(pair, kernel.vector(scalar, 2)), kernel.i32());
}

std::vector<Value*> convert_packed(Kernel& kernel, Value* registers, int first, int count, Element element,
                                   NanInput nan) {
  std::vector<Value*> dwords;
  dwords.reserve(static_cast<std::size_t>(count / 2));
  for (int r = first; r < first + count; r += 2)
    dwords.push_back(convert_pair(kernel, kernel.ir().CreateShuffleVector(registers, {r, r + 1}), element, nan));
  return dwords;
}

Value* float_of_bf16(Kernel& kernel, Value* dword, int half) {
  llvm::IRBuilder<>& ir = kernel.ir();
  Value* bits = half == 0 ? ir.CreateShl(dword, bf16_bits) : ir.CreateAnd(dword, ir.getInt32(0xFFFF0000));
  return ir.CreateBitCast(bits, kernel.f32());
}

Value* widen_bytes(Kernel& kernel, Value* dword, int half, ByteElement type, Element element, Value* scale) {
  llvm::IRBuilder<>& ir = kernel.ir();
  if (!kernel.target().byte_convert_16 || type == ByteElement::i8) {
    if (scale != nullptr) kernel.refuse("a scale of bytes that are widened in several instructions");
    const auto [first, second] = floats_of_bytes(kernel, dword, half, type);
    return pack_exact(kernel, first, second, element);
  }
  const bool wide = type == ByteElement::e5m2;
  const llvm::Intrinsic::ID instruction =
      element == Element::bf16
          ? (wide ? llvm::Intrinsic::amdgcn_cvt_scalef32_pk_bf16_bf8 : llvm::Intrinsic::amdgcn_cvt_scalef32_pk_bf16_fp8)
          : (wide ? llvm::Intrinsic::amdgcn_cvt_scalef32_pk_f16_bf8 : llvm::Intrinsic::amdgcn_cvt_scalef32_pk_f16_fp8);
  Value* pair = ir.CreateIntrinsic(instruction, {},
                                   {dword, scale != nullptr ? scale : kernel.constant(1.0F), ir.getInt1(half != 0)});
  return ir.CreateBitCast(pair, kernel.i32());
}

std::array<Value*, 2> floats_of_bytes(Kernel& kernel, Value* dword, int half, ByteElement type) {
  llvm::IRBuilder<>& ir = kernel.ir();
  if (type == ByteElement::i8) return floats_of_integers(kernel, dword, half);
  const llvm::Intrinsic::ID instruction =
      type == ByteElement::e5m2 ? llvm::Intrinsic::amdgcn_cvt_pk_f32_bf8 : llvm::Intrinsic::amdgcn_cvt_pk_f32_fp8;
  Value* pair = ir.CreateIntrinsic(instruction, {}, {dword, ir.getInt1(half != 0)});
  return {ir.CreateExtractElement(pair, std::uint64_t{0}), ir.CreateExtractElement(pair, std::uint64_t{1})};
}

Value* pack_exact(Kernel& kernel, Value* first, Value* second, Element element) {
  llvm::IRBuilder<>& ir = kernel.ir();
  if (element == Element::fp16)
    return ir.CreateBitCast(ir.CreateIntrinsic(llvm::Intrinsic::amdgcn_cvt_pkrtz, {}, {first, second}), kernel.i32());
  // The upper halves. v_perm_b32: selector bytes 0–3 name the second source, 4–7 the first.
  constexpr std::uint32_t high_halves = 0x07060302;
  return ir.CreateIntrinsic(
      llvm::Intrinsic::amdgcn_perm, {},
      {ir.CreateBitCast(second, kernel.i32()), ir.CreateBitCast(first, kernel.i32()), ir.getInt32(high_halves)});
}

Value* gather_dwords(Kernel& kernel, std::span<Value* const> dwords) {
  Value* vector = llvm::PoisonValue::get(kernel.vector(kernel.i32(), static_cast<int>(dwords.size())));
  for (std::size_t index = 0; index < dwords.size(); ++index)
    vector = kernel.ir().CreateInsertElement(vector, dwords[index], index);
  return vector;
}

}  // namespace wavejit::language
