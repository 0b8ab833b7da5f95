// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention/emit/output_bytes.h"

#include <llvm/IR/IntrinsicsAMDGPU.h>

#include <vector>

#include "templates/attention/kernel/output_scale.h"

namespace wavejit::attention {

using language::Kernel;
using language::Value;

namespace {

constexpr int bytes_of_dword = 4;
constexpr int byte_bits = 8;

}  // namespace

Value* between(Kernel& kernel, Value* value, float least, float most) {
  return kernel.ir().CreateIntrinsic(llvm::Intrinsic::amdgcn_fmed3, {kernel.f32()},
                                     {value, kernel.constant(least), kernel.constant(most)});
}

float least_of(DataType type) { return type == DataType::i8 ? -limit_of(type) - 1 : -limit_of(type); }

Value* four_floats(Kernel& kernel, const FourFloats& numbers, DataType type) {
  llvm::IRBuilder<>& ir = kernel.ir();
  const bool wide = type == DataType::e5m2 || type == DataType::e5m2_fnuz;
  const llvm::Intrinsic::ID instruction =
      wide ? llvm::Intrinsic::amdgcn_cvt_pk_bf8_f32 : llvm::Intrinsic::amdgcn_cvt_pk_fp8_f32;
  Value* low = ir.CreateIntrinsic(instruction, {},
                                  {numbers[0], numbers[1], llvm::PoisonValue::get(kernel.i32()), ir.getFalse()});
  return ir.CreateIntrinsic(instruction, {}, {numbers[2], numbers[3], low, ir.getTrue()});
}

Value* four_integers(Kernel& kernel, const FourFloats& numbers) {
  llvm::IRBuilder<>& ir = kernel.ir();
  Value* dword = nullptr;
  for (int byte = 0; byte < bytes_of_dword; ++byte) {
    Value* integer = ir.CreateFPToSI(numbers[static_cast<std::size_t>(byte)], kernel.i32());
    if (byte + 1 < bytes_of_dword) integer = ir.CreateAnd(integer, kernel.constant(0xFF));
    Value* own = ir.CreateShl(integer, kernel.constant(byte * byte_bits));
    dword = dword == nullptr ? own : ir.CreateOr(dword, own);
  }
  return dword;
}

OutputBytes::OutputBytes(Kernel& kernel, DataType type, std::size_t at)
    : OutputBytes(kernel, type, at + offsetof(OutputScale, number), at + offsetof(OutputScale, value)) {}

OutputBytes::OutputBytes(Kernel& kernel, DataType type, std::size_t address_at, std::size_t value_at)
    : kernel_(kernel), type_(type) {
  llvm::IRBuilder<>& ir = kernel.ir();
  Value* given = kernel.argument_i64(address_at);
  Value* own = ir.CreateAdd(kernel.argument_address(), ir.getInt64(value_at));
  Value* scale = kernel.load_scalar(ir.CreateSelect(ir.CreateICmpEQ(given, ir.getInt64(0)), own, given), kernel.f32());
  reciprocal_ = kernel.uniform(ir.CreateFDiv(kernel.constant(1.0F), scale));
}

Value* OutputBytes::of(const FourFloats& numbers) const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  const targets::Target& target = kernel_.target();
  const float limit = limit_of(type_);
  if (type_ != DataType::i8 && !reads(target, type_)) return as_other_encoding(numbers);
  FourFloats rounded = {};
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    Value* scaled = ir.CreateFMul(numbers[i], reciprocal_);
    Value* is_nan = ir.CreateFCmpUNO(scaled, scaled);
    if (type_ == DataType::i8) {
      Value* whole = ir.CreateUnaryIntrinsic(llvm::Intrinsic::roundeven, scaled);
      rounded[i] = ir.CreateSelect(is_nan, kernel_.constant(0.0F), between(kernel_, whole, least_of(type_), limit));
    } else {
      rounded[i] = ir.CreateSelect(is_nan, llvm::ConstantFP::getNaN(kernel_.f32()),
                                   between(kernel_, scaled, least_of(type_), limit));
    }
  }
  return type_ == DataType::i8 ? four_integers(kernel_, rounded) : four_floats(kernel_, rounded, type_);
}

// The FNUZ form of half a magnitude has the byte that e4m3 has for all of it: exponents are one apart, and both round
// at the same place. Its 240 has e4m3's NaN. The sign comes behind, because a zero of the FNUZ form has none.
Value* OutputBytes::as_other_encoding(const FourFloats& numbers) const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  constexpr float byte_of_nan = 240;
  FourFloats halves = {};
  Value* signs = nullptr;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    Value* scaled = ir.CreateFMul(numbers[i], reciprocal_);
    Value* is_nan = ir.CreateFCmpUNO(scaled, scaled);
    Value* half = ir.CreateFMul(ir.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, scaled), kernel_.constant(0.5F));
    halves[i] =
        ir.CreateSelect(is_nan, kernel_.constant(byte_of_nan), between(kernel_, half, 0, limit_of(DataType::e4m3) / 2));
    Value* sign = ir.CreateAnd(ir.CreateBitCast(scaled, kernel_.i32()), ir.getInt32(0x80000000));
    sign = ir.CreateSelect(is_nan, kernel_.constant(0), sign);
    sign = ir.CreateLShr(sign, kernel_.constant((bytes_of_dword - 1 - static_cast<int>(i)) * byte_bits));
    signs = signs == nullptr ? sign : ir.CreateOr(signs, sign);
  }
  return ir.CreateOr(four_floats(kernel_, halves, DataType::e4m3_fnuz), signs);
}

std::vector<Value*> OutputBytes::of(Value* vector, int first, int count) const {
  std::vector<Value*> dwords;
  for (int i = first; i < first + count; i += bytes_of_dword) {
    FourFloats numbers = {};
    for (int element = 0; element < bytes_of_dword; ++element)
      numbers[static_cast<std::size_t>(element)] = kernel_.ir().CreateExtractElement(vector, i + element);
    dwords.push_back(of(numbers));
  }
  return dwords;
}

}  // namespace wavejit::attention
