// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/cache_append/emit/narrow.h"

#include <llvm/IR/IntrinsicsAMDGPU.h>

#include <array>
#include <bit>
#include <cstddef>

#include "codegen/language/control.h"
#include "codegen/language/convert.h"
#include "codegen/language/cross_lane.h"
#include "templates/attention/emit/output_bytes.h"
#include "templates/cache_append/emit/rotary.h"

namespace wavejit::cache_append {
namespace {

using attention::between;
using attention::four_floats;
using attention::four_integers;
using attention::least_of;
using language::Buffer;
using language::Kernel;
using language::Value;
using language::Values;

constexpr int scale_bytes = 4;
constexpr int mantissa_bits_of_f32 = 23;
constexpr int bytes_of_dword = 4;

Value* fused(Kernel& kernel, Value* a, Value* b, Value* c) {
  return kernel.ir().CreateIntrinsic(llvm::Intrinsic::fma, {kernel.f32()}, {a, b, c});
}

// One scale, many numbers: x / scale as a division in f32 has it. The quotient by the reciprocal is at most a unit off,
// what is left of x is exact, and the second step rounds as the division does (P. Markstein, "Computation of elementary
// functions on the IBM RISC System/6000 processor", 1990).
class Division {
 public:
  Division(Kernel& kernel, Value* scale) : kernel_(kernel), scale_(scale) {
    llvm::IRBuilder<>& ir = kernel.ir();
    Value* estimate = ir.CreateIntrinsic(llvm::Intrinsic::amdgcn_rcp, {kernel.f32()}, {scale});
    Value* left = fused(kernel, ir.CreateFNeg(scale), estimate, kernel.constant(1.0F));
    reciprocal_ = fused(kernel, left, estimate, estimate);
  }

  // Quotients beyond twice the limit need not be right: they are that limit.
  Value* of(Value* number, float limit) const {
    llvm::IRBuilder<>& ir = kernel_.ir();
    Value* quotient = between(kernel_, ir.CreateFMul(number, reciprocal_), -2 * limit, 2 * limit);
    Value* left = fused(kernel_, ir.CreateFNeg(quotient), scale_, number);
    return fused(kernel_, left, reciprocal_, quotient);
  }

 private:
  Kernel& kernel_;
  Value* scale_;
  Value* reciprocal_;
};

Value* four_bytes(Kernel& kernel, const std::array<Value*, bytes_of_dword>& numbers, const Division& division,
                  DataType type) {
  llvm::IRBuilder<>& ir = kernel.ir();
  std::array<Value*, bytes_of_dword> bytes = {};
  for (std::size_t byte = 0; byte < bytes.size(); ++byte) {
    Value* quotient = division.of(numbers[byte], limit_of(type));
    if (type == DataType::i8) quotient = ir.CreateUnaryIntrinsic(llvm::Intrinsic::roundeven, quotient);
    bytes[byte] = between(kernel, quotient, least_of(type), limit_of(type));
    if (type == DataType::i8) continue;
    // A zero keeps its sign, which the second step of the division would drop, and NaN stays one.
    Value* as_it_is = ir.CreateFCmpUEQ(numbers[byte], kernel.constant(0.0F));
    bytes[byte] = ir.CreateSelect(as_it_is, numbers[byte], bytes[byte]);
  }
  return type == DataType::i8 ? four_integers(kernel, bytes) : four_floats(kernel, bytes, type);
}

}  // namespace

Narrowing::Narrowing(Kernel& kernel, const AppendKernel& spec, int side, const SideFields& fields, const Lane& lane)
    : kernel_(kernel),
      spec_(spec),
      side_(fields),
      lane_(lane),
      at_(offsetof(NarrowArguments, scales) + (static_cast<std::size_t>(side) * sizeof(ScaleSide))) {}

// The struct ScaleSide in scalar registers: read where it is needed, as load_side() does.
struct Narrowing::Fields {
  Value* scale;
  Value* page_stride;
  Value* key_stride;
  Value* head_stride;
  Value* row_bytes;
};

Narrowing::Fields Narrowing::fields() const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  constexpr int dwords = sizeof(ScaleSide) / sizeof(std::uint32_t);
  Value* group = kernel_.load_scalar(ir.CreateAdd(kernel_.argument_address(), ir.getInt64(at_)),
                                     kernel_.vector(kernel_.i32(), dwords));
  const auto i32 = [&](std::size_t field) {
    return ir.CreateExtractElement(group, static_cast<std::uint64_t>(field / sizeof(std::uint32_t)));
  };
  const auto i64 = [&](std::size_t field) {
    constexpr int dword_bits = 32;
    Value* upper = ir.CreateShl(ir.CreateZExt(i32(field + sizeof(std::uint32_t)), kernel_.i64()), dword_bits);
    return ir.CreateOr(ir.CreateZExt(i32(field), kernel_.i64()), upper);
  };
  return {.scale = i64(offsetof(ScaleSide, scale)),
          .page_stride = i64(offsetof(ScaleSide, page_stride)),
          .key_stride = i64(offsetof(ScaleSide, key_stride)),
          .head_stride = i32(offsetof(ScaleSide, head_stride)),
          .row_bytes = i32(offsetof(ScaleSide, row_bytes))};
}

void Narrowing::load() {
  if (spec_.scales != Scales::heads) return;
  llvm::IRBuilder<>& ir = kernel_.ir();
  const Fields all = fields();
  Value* given = all.scale;
  Value* one = ir.CreateAdd(kernel_.argument_address(), ir.getInt64(offsetof(Arguments, one)));
  Value* address = ir.CreateSelect(ir.CreateICmpEQ(given, ir.getInt64(0)), one, given);
  // A head that there is not has the first one's.
  Value* head = ir.CreateSelect(lane_.live, lane_.head, kernel_.constant(0));
  Value* offset = ir.CreateMul(head, all.head_stride);
  Value* bits = language::load_lanes(kernel_, ir.CreateAdd(address, ir.CreateZExt(offset, kernel_.i64())), scale_bytes);
  scale_ = ir.CreateBitCast(bits, kernel_.f32());
}

Values Narrowing::narrowed(const Values& dwords) {
  const Values numbers = numbers_of(kernel_, dwords, spec_.source);
  if (spec_.scales != Scales::heads) scale_ = found(numbers);
  const Division division(kernel_, scale_);
  Values bytes;
  for (std::size_t number = 0; number < numbers.size(); number += bytes_of_dword)
    bytes.push_back(four_bytes(kernel_,
                               {numbers[number], numbers[number + 1], numbers[number + 2], numbers[number + 3]},
                               division, spec_.cache));
  return bytes;
}

Value* Narrowing::found(const Values& numbers) const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  Value* greatest = kernel_.constant(0.0F);
  for (Value* number : numbers)
    greatest = ir.CreateMaxNum(greatest, ir.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, number));
  greatest = greatest_of_lanes(greatest);
  Value* scale = ir.CreateFDiv(greatest, kernel_.constant(limit_of(spec_.cache)));
  const float least = spec_.scales == Scales::tokens ? least_token_scale : least_tile_scale;
  scale = ir.CreateMaxNum(scale, kernel_.constant(least));
  return spec_.scales == Scales::exponents ? next_power_of_two(scale) : scale;
}

// Over the lanes of a head, which are a power of two side by side, or over those of a tile.
Value* Narrowing::greatest_of_lanes(Value* value) const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  for (int step = 1; step < kernel_.target().wave_size; step *= 2) {
    if (in_rows(spec_.scales)) {
      if (step >= latent_row(spec_.scales).tile_dims / dims_of_lane) break;
      value = ir.CreateMaxNum(value, language::of_lane_across(kernel_, value, step));
      continue;
    }
    Value* more = ir.CreateMaxNum(value, language::of_lane_across(kernel_, value, step));
    Value* together = ir.CreateICmpULT(kernel_.constant(step), ir.CreateShl(kernel_.constant(1), side_.lane_shift));
    value = ir.CreateSelect(together, more, value);
  }
  return value;
}

// Positive and normal; itself, if it is one.
Value* Narrowing::next_power_of_two(Value* scale) const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  constexpr int all_below = (1 << mantissa_bits_of_f32) - 1;
  Value* bits = ir.CreateAdd(ir.CreateBitCast(scale, kernel_.i32()), kernel_.constant(all_below));
  bits = ir.CreateAnd(bits, kernel_.constant(~all_below));
  return ir.CreateBitCast(bits, kernel_.f32());
}

void Narrowing::store_scale(const Number& slot, const Place& place, Value* inside) const {
  if (spec_.scales == Scales::heads) return;
  // A block of its own: its scalars are read when those of the row are no longer needed.
  language::if_uniform(kernel_, kernel_.ir().CreateAnd(slot.valid, inside), language::Likelihood::even,
                       [&] { store_into(place); });
}

void Narrowing::store_into(const Place& place) const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  const Fields all = fields();
  Value* address = all.scale;
  const auto advance = [&](Value* index, Value* stride) {
    address = ir.CreateAdd(address, ir.CreateMul(ir.CreateZExt(index, kernel_.i64()), stride));
  };
  advance(place.page, all.page_stride);
  advance(place.key, all.key_stride);
  const Buffer row(kernel_, address, all.row_bytes);
  // The first of the lanes that have one together writes it. Heads and tiles that there are not stand behind the row,
  // where nothing is written.
  Value* index = lane_.head;
  Value* first = lane_.piece;
  if (in_rows(spec_.scales)) {
    const auto lanes = static_cast<unsigned>(latent_row(spec_.scales).tile_dims / dims_of_lane);
    index = ir.CreateLShr(lane_.piece, kernel_.constant(std::countr_zero(lanes)));
    first = ir.CreateAnd(lane_.piece, kernel_.constant(static_cast<int>(lanes) - 1));
  }
  Value* offset = ir.CreateSelect(ir.CreateICmpEQ(first, kernel_.constant(0)), ir.CreateMul(index, all.head_stride),
                                  ir.getInt32(nowhere));
  Value* bits = ir.CreateBitCast(scale_, kernel_.i32());
  if (spec_.scales == Scales::exponents) {
    row.store_element(1, ir.CreateLShr(bits, kernel_.constant(mantissa_bits_of_f32)), offset, kernel_.constant(0));
    return;
  }
  row.store_element(scale_bytes, bits, offset, kernel_.constant(0));
}

}  // namespace wavejit::cache_append
