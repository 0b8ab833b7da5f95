// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/cache_append/emit/rotary.h"

#include <llvm/IR/IntrinsicsAMDGPU.h>

#include <algorithm>
#include <cstddef>

#include "codegen/language/convert.h"
#include "templates/attention/emit/integers.h"

namespace wavejit::cache_append {
namespace {

using language::Buffer;
using language::Kernel;
using language::Value;
using language::Values;

constexpr int table_vector_bytes = 16;

int table_bytes(Angles angles) { return angles == Angles::fp32 ? 4 : 2; }
DataType table_type(Angles angles) { return angles == Angles::fp16 ? DataType::fp16 : DataType::bf16; }

Value* fma(Kernel& kernel, Value* a, Value* b, Value* c) {
  return kernel.ir().CreateIntrinsic(llvm::Intrinsic::fma, {kernel.f32()}, {a, b, c});
}

// Dwords of a load, side by side.
void append_dwords(Kernel& kernel, Values& dwords, Value* loaded) {
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(loaded->getType());
  for (std::uint64_t dword = 0; dword < vector->getNumElements(); ++dword)
    dwords.push_back(kernel.ir().CreateExtractElement(loaded, dword));
}

}  // namespace

Values numbers_of(Kernel& kernel, const Values& dwords, DataType type) {
  llvm::IRBuilder<>& ir = kernel.ir();
  Values numbers;
  for (Value* dword : dwords) {
    if (type == DataType::bf16) {
      for (int half = 0; half < 2; ++half) numbers.push_back(language::float_of_bf16(kernel, dword, half));
      continue;
    }
    Value* pair = ir.CreateBitCast(dword, kernel.vector(llvm::Type::getHalfTy(kernel.context()), 2));
    for (std::uint64_t half = 0; half < 2; ++half)
      numbers.push_back(ir.CreateFPExt(ir.CreateExtractElement(pair, half), kernel.f32()));
  }
  return numbers;
}

Values rounded(Kernel& kernel, const Values& numbers, DataType type) {
  llvm::IRBuilder<>& ir = kernel.ir();
  const language::Element element = type == DataType::bf16 ? language::Element::bf16 : language::Element::fp16;
  Values dwords;
  for (std::size_t number = 0; number < numbers.size(); number += 2) {
    Value* pair = llvm::PoisonValue::get(kernel.vector(kernel.f32(), 2));
    pair = ir.CreateInsertElement(pair, numbers[number], std::uint64_t{0});
    pair = ir.CreateInsertElement(pair, numbers[number + 1], std::uint64_t{1});
    dwords.push_back(language::convert_pair(kernel, pair, element, language::NanInput::kept));
  }
  return dwords;
}

Rotation::Rotation(Kernel& kernel, const AppendKernel& spec, const SideFields& side, const Lane& lane)
    : kernel_(kernel), spec_(spec), side_(side), first_(nullptr), to_partner_(nullptr) {
  llvm::IRBuilder<>& ir = kernel.ir();
  Value* pieces = kernel.argument_i32(offsetof(Arguments, rotary_pieces));
  turns_ = ir.CreateAnd(lane.live, ir.CreateICmpULT(lane.piece, pieces));
  if (spec.rotary == Rotary::halves) {
    Value* half = ir.CreateLShr(pieces, 1);
    first_ = ir.CreateICmpULT(lane.piece, half);
    Value* step = ir.CreateSelect(first_, half, ir.CreateSub(kernel.constant(0), half));
    to_partner_ = ir.CreateMul(step, ir.CreateMul(side.source_dim_stride, kernel.constant(dims_of_lane)));
    Value* piece = ir.CreateSelect(first_, lane.piece, ir.CreateSub(lane.piece, half));
    first_pair_ = ir.CreateMul(piece, kernel.constant(dims_of_lane));
  } else {
    first_pair_ = ir.CreateMul(lane.piece, kernel.constant(dims_of_lane / 2));
  }
  if (spec.angles != Angles::base) return;
  Value* pair = ir.CreateSelect(turns_, first_pair_, kernel.constant(0));
  Value* address = ir.CreateAdd(kernel.argument_address(), ir.getInt64(offsetof(BaseArguments, frequencies)));
  address = ir.CreateAdd(address, ir.CreateMul(ir.CreateZExt(pair, kernel.i64()), ir.getInt64(sizeof(std::uint64_t))));
  const int bytes = pairs() * static_cast<int>(sizeof(std::uint64_t));
  for (int byte = 0; byte < bytes; byte += table_vector_bytes)
    append_dwords(kernel, frequencies_,
                  language::load_lanes(kernel, ir.CreateAdd(address, ir.getInt64(static_cast<std::uint64_t>(byte))),
                                       table_vector_bytes));
}

Rotation::Loaded Rotation::load(const Token& token, const Buffer& source, Value* source_offset) const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  Loaded loaded = {.partner = {}, .cosines = {}, .sines = {}, .position = nullptr};
  const Number position = number_of(kernel_, token, offsetof(Arguments, positions), offsetof(Arguments, position_shift),
                                    kernel_.argument_i32(offsetof(Arguments, table_rows)));
  if (spec_.rotary == Rotary::halves)
    loaded.partner = load_piece(kernel_, source, spec_.source_access, ir.CreateAdd(source_offset, to_partner_),
                                side_.source_dim_stride, turns_);
  if (spec_.angles == Angles::base) {
    loaded.position = position.value;
    return loaded;
  }
  loaded.cosines = load_table(position, token, offsetof(Arguments, cosines), offsetof(Arguments, cosine_stride));
  loaded.sines = load_table(position, token, offsetof(Arguments, sines), offsetof(Arguments, sine_stride));
  return loaded;
}

Values Rotation::load_table(const Number& position, const Token& token, std::size_t pointer, std::size_t stride) const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  const int bytes = table_bytes(spec_.angles);
  Value* row = ir.CreateMul(ir.CreateZExt(position.value, kernel_.i64()), kernel_.argument_i64(stride));
  Value* row_bytes = ir.CreateMul(kernel_.argument_i32(offsetof(Arguments, rotary_pieces)),
                                  kernel_.constant(bytes * dims_of_lane / 2));
  const Buffer table(kernel_, ir.CreateAdd(kernel_.argument_i64(pointer), row),
                     ir.CreateSelect(ir.CreateAnd(position.valid, token.inside), row_bytes, kernel_.constant(0)));
  Value* own = ir.CreateMul(first_pair_, kernel_.constant(bytes));
  Value* offset = ir.CreateSelect(turns_, own, ir.getInt32(nowhere));
  Values dwords;
  const int all = pairs() * bytes;
  for (int byte = 0; byte < all; byte += table_vector_bytes)
    append_dwords(kernel_, dwords,
                  table.load(std::min(all - byte, table_vector_bytes),
                             byte == 0 ? offset : ir.CreateAdd(offset, kernel_.constant(byte)), kernel_.constant(0)));
  return dwords;
}

Values Rotation::table_numbers(const Values& dwords) const {
  if (spec_.angles != Angles::fp32) return numbers_of(kernel_, dwords, table_type(spec_.angles));
  Values numbers;
  for (Value* dword : dwords) numbers.push_back(kernel_.ir().CreateBitCast(dword, kernel_.f32()));
  return numbers;
}

void Rotation::angles(const Loaded& loaded, Values& cosines, Values& sines) const {
  if (spec_.angles != Angles::base) {
    cosines = table_numbers(loaded.cosines);
    sines = table_numbers(loaded.sines);
    return;
  }
  llvm::IRBuilder<>& ir = kernel_.ir();
  constexpr float of_whole = 0x1p-32F;
  for (std::size_t pair = 0; pair < static_cast<std::size_t>(pairs()); ++pair) {
    Value* lower = frequencies_[2 * pair];
    Value* upper = frequencies_[(2 * pair) + 1];
    Value* fraction =
        ir.CreateAdd(attention::high_half(kernel_, lower, loaded.position), ir.CreateMul(upper, loaded.position));
    Value* revolutions = ir.CreateFMul(ir.CreateSIToFP(fraction, kernel_.f32()), kernel_.constant(of_whole));
    cosines.push_back(ir.CreateIntrinsic(llvm::Intrinsic::amdgcn_cos, {kernel_.f32()}, {revolutions}));
    sines.push_back(ir.CreateIntrinsic(llvm::Intrinsic::amdgcn_sin, {kernel_.f32()}, {revolutions}));
  }
}

Values Rotation::turned(const Values& dwords, const Loaded& loaded) const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  Values cosines;
  Values sines;
  angles(loaded, cosines, sines);
  const Values own = numbers_of(kernel_, dwords, spec_.source);
  Values results;
  if (spec_.rotary == Rotary::halves) {
    const Values other = numbers_of(kernel_, loaded.partner, spec_.source);
    for (std::size_t dim = 0; dim < own.size(); ++dim) {
      Value* sine = ir.CreateSelect(first_, ir.CreateFNeg(sines[dim]), sines[dim]);
      results.push_back(fma(kernel_, own[dim], cosines[dim], ir.CreateFMul(other[dim], sine)));
    }
  } else {
    for (std::size_t dim = 0; dim < own.size(); dim += 2) {
      Value* cosine = cosines[dim / 2];
      Value* sine = sines[dim / 2];
      results.push_back(fma(kernel_, own[dim], cosine, ir.CreateFNeg(ir.CreateFMul(own[dim + 1], sine))));
      results.push_back(fma(kernel_, own[dim + 1], cosine, ir.CreateFMul(own[dim], sine)));
    }
  }
  Values turned = rounded(kernel_, results, spec_.source);
  for (std::size_t dword = 0; dword < turned.size(); ++dword)
    turned[dword] = ir.CreateSelect(turns_, turned[dword], dwords[dword]);
  return turned;
}

}  // namespace wavejit::cache_append
