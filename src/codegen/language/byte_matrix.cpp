// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "codegen/language/byte_matrix.h"

#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/IntrinsicsAMDGPU.h>

#include "codegen/language/convert.h"

namespace wavejit::language {
namespace {

constexpr int in_dword = 4;
// Ones are of e2m1, four bits each, which takes half the registers of e4m3 and as much time beside it.
constexpr int dwords_of_ones = 4;
constexpr std::uint32_t eight_ones = 0x22222222;
// Numbers that the instruction has for formats.
constexpr std::uint32_t format_e4m3 = 0;
constexpr std::uint32_t format_e2m1 = 4;

// The same in registers of its own, of which the compiler knows nothing.
Value* opaque(Kernel& kernel, Value* value) {
  llvm::FunctionType* type = llvm::FunctionType::get(value->getType(), {value->getType()}, false);
  llvm::CallInst* call = kernel.ir().CreateCall(llvm::InlineAsm::get(type, "", "=v,0", false), {value});
  call->setMemoryEffects(llvm::MemoryEffects::none());
  return call;
}

}  // namespace

ByteMatrix::ByteMatrix(Kernel& kernel) : kernel_(kernel) {
  if (!kernel.target().byte_matrix)
    kernel.refuse("products of floats of 8 bits need v_mfma_f32_32x32x64_f8f6f4, which " +
                  std::string(kernel.target().id) + " does not have");
  // Opaque: else the backend would write them anew in front of each product.
  Value* ones = kernel.ir().CreateVectorSplat(dwords_of_ones, kernel.ir().getInt32(eight_ones));
  ones_ = opaque(kernel, ones);
}

ByteOperand ByteMatrix::operand(Value* first, Value* second, KOrder order) const {
  return {.value = kernel_.ir().CreateShuffleVector(first, second, {0, 1, 2, 3, 4, 5, 6, 7}), .k_order = order};
}

Value* ByteMatrix::rounded(Value* first, Value* second, Value* dword, int half) const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  return ir.CreateIntrinsic(llvm::Intrinsic::amdgcn_cvt_pk_fp8_f32, {}, {first, second, dword, ir.getInt1(half != 0)});
}

ByteOperand ByteMatrix::rounded(const Accumulator& first, const Accumulator& second) const {
  std::vector<Value*> all;
  for (const Accumulator* part : {&first, &second}) {
    const auto weight = [&](int r) { return kernel_.ir().CreateExtractElement(part->value, r); };
    for (int r = 0; r < part->layout.registers(); r += in_dword) {
      Value* low = rounded(weight(r), weight(r + 1), llvm::PoisonValue::get(kernel_.i32()), 0);
      all.push_back(rounded(weight(r + 2), weight(r + 3), low, 1));
    }
  }
  return {.value = gather_dwords(kernel_, all), .k_order = KOrder::accumulator_rows};
}

AccumulatorLayout ByteMatrix::accumulator_layout() const {
  return {.rows = rows, .columns = rows, .wave_size = kernel_.target().wave_size};
}

Accumulator ByteMatrix::zeros() const {
  const AccumulatorLayout layout = accumulator_layout();
  return {llvm::Constant::getNullValue(kernel_.vector(kernel_.f32(), layout.registers())), layout};
}

Accumulator ByteMatrix::mma(const ByteOperand& a, const ByteOperand& b, const Accumulator& c, Value* scale) const {
  if (a.k_order != b.k_order) {
    kernel_.refuse("mma of bytes: one operand is in contiguous, the other in accumulator-row order");
    return c;
  }
  if (c.layout != accumulator_layout()) {
    kernel_.refuse("mma of bytes: the accumulator holds " + c.layout.describe() + ", the instruction takes " +
                   accumulator_layout().describe());
    return c;
  }
  if (kernel_.refused()) return c;
  return multiply(a.value, format_e4m3, b, c, scale);
}

Accumulator ByteMatrix::multiply(Value* a, std::uint32_t format_of_a, const ByteOperand& b, const Accumulator& c,
                                 Value* scale) const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  Accumulator result = c;
  // Scales of 0 choose the form of the instruction that has none.
  Value* zero = ir.getInt32(0);
  // Which byte of the register has an operand's scale.
  Value* byte_of_a = scale == nullptr ? zero : ir.getInt32(1);
  Value* scales = scale == nullptr ? zero : ir.CreateBitCast(scale, kernel_.i32());
  result.value = ir.CreateIntrinsic(
      llvm::Intrinsic::amdgcn_mfma_scale_f32_32x32x64_f8f6f4, {a->getType(), b.value->getType()},
      {a, b.value, c.value, ir.getInt32(format_of_a), ir.getInt32(format_e4m3), byte_of_a, scales, zero, scales});
  return result;
}

Accumulator ByteMatrix::column_sums(const ByteOperand& b, Value* scale) const {
  return multiply(ones_, format_e2m1, b, zeros(), scale);
}

Value* ByteMatrix::of_columns(const Accumulator& sums) const {
  return kernel_.ir().CreateExtractElement(opaque(kernel_, sums.value), std::uint64_t{0});
}

}  // namespace wavejit::language
