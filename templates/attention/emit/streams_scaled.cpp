// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Rows of bytes that have scales, on their way into LDS: what stands there is round(byte · scale).
#include <array>
#include <memory>

#include "codegen/language/convert.h"
#include "templates/attention/emit/streams_swizzled.h"

namespace wavejit::attention {

using language::Value;
using language::Values;

Value* SwizzledStream::scaled_unit(Value* loaded, int half, Value* scale) const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  Value* both = ir.CreateVectorSplat(2, scale);
  Values dwords;
  for (int dword = 2 * half; dword < (2 * half) + 2; ++dword)
    for (const int part : {0, 1}) {
      Value* four = ir.CreateExtractElement(loaded, static_cast<std::uint64_t>(dword));
      const auto [first, second] = language::floats_of_bytes(kernel_, four, part, byte_element());
      Value* pair = llvm::PoisonValue::get(both->getType());
      pair = ir.CreateInsertElement(pair, first, std::uint64_t{0});
      pair = ir.CreateInsertElement(pair, second, std::uint64_t{1});
      dwords.push_back(language::convert_pair(kernel_, ir.CreateFMul(pair, both), matrix_.element(),
                                              language::NanInput::kept_short));
    }
  return language::gather_dwords(kernel_, dwords);
}

Value* SwizzledStream::raised_unit(Value* loaded, int half, Value* exponent) const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  constexpr int mantissa_bits = 23;
  constexpr std::uint32_t no_number = 0xFF;
  // 2^-127 is below what a mantissa of 1 can have: the exponent is 0 and the number is subnormal.
  constexpr std::uint32_t least = 0x00400000;
  Value* is_none = ir.CreateICmpEQ(exponent, ir.getInt32(no_number));
  Value* bits = ir.CreateShl(exponent, kernel_.constant(mantissa_bits));
  if (!kernel_.target().byte_convert_16) {
    bits = ir.CreateBinaryIntrinsic(llvm::Intrinsic::umax, bits, ir.getInt32(least));
    Value* scale =
        ir.CreateSelect(is_none, llvm::ConstantFP::getNaN(kernel_.f32()), ir.CreateBitCast(bits, kernel_.f32()));
    return scaled_unit(loaded, half, scale);
  }
  // The conversion reads an exponent, and knows none that is NaN: bytes are made NaN before it.
  constexpr std::uint32_t nan_bytes = 0x7F7F7F7F;
  Value* none = ir.CreateSelect(is_none, ir.getInt32(nan_bytes), ir.getInt32(0));
  Value* scale = ir.CreateBitCast(bits, kernel_.f32());
  Values dwords;
  for (int dword = 2 * half; dword < (2 * half) + 2; ++dword) {
    Value* four = ir.CreateOr(ir.CreateExtractElement(loaded, static_cast<std::uint64_t>(dword)), none);
    for (const int part : {0, 1})
      dwords.push_back(language::widen_bytes(kernel_, four, part, byte_element(), matrix_.element(), scale));
  }
  return language::gather_dwords(kernel_, dwords);
}

language::Strand SwizzledRows::write_scaled(const Values& loaded, const ScaleOf& scale_of) {
  // Four times two conversions and two products.
  constexpr int slots = 14;
  language::Strand strand;
  // Asked for a load before it is needed, so that nobody waits for it.
  struct Scales {
    Value* now;
    Value* next;
  };
  const auto scales = std::make_shared<Scales>(nullptr, scale_of(0));
  for (int i = 0; i < loads(); ++i) {
    Value* dwords = loaded[static_cast<std::size_t>(i)];
    for (const int half : {0, 1})
      strand.add(
          [=, this] {
            if (half == 0) {
              scales->now = scales->next;
              if (i + 1 < loads()) scales->next = scale_of(i + 1);
            }
            write_unit(scaled_unit(dwords, half, scales->now), i, half);
          },
          slots);
  }
  return strand;
}

// Kept dims follow the units of widened bytes. Loads begin at multiples of a run's length, so xor computes the swizzle.
void SwizzledRows::write_kept(Value* dwords, int load) {
  const int unit = units_of_bytes() + place_of(load).second;
  Value* place = kernel_.ir().CreateXor(write_, to_kept_);
  if (const int swizzle = unit % units_swizzled; swizzle != 0)
    place = kernel_.ir().CreateXor(place, kernel_.constant(swizzle * unit_bytes));
  lds_.write(region_, dwords, place, offset_ + unit / units_swizzled * units_swizzled * unit_bytes);
}

language::Strand SwizzledRows::write_raised(const Values& loaded, Value* exponents) {
  // Slots for two operations: four conversions, four bytes that may be NaN, an address; and half of what the exponent
  // takes.
  constexpr int slots = 12;
  constexpr int byte_bits = 8;
  constexpr int dword_bytes = 4;
  language::Strand strand;
  const auto exponent = std::make_shared<Value*>(nullptr);
  for (int i = 0; i < loads(); ++i) {
    Value* dwords = loaded[static_cast<std::size_t>(i)];
    if (is_kept(i)) {
      strand.add([=, this] { write_kept(dwords, i); });
      continue;
    }
    for (const int half : {0, 1})
      strand.add(
          [=, this] {
            llvm::IRBuilder<>& ir = kernel_.ir();
            if (half == 0) {
              Value* four = ir.CreateExtractElement(exponents, static_cast<std::uint64_t>(i / dword_bytes));
              *exponent = ir.CreateAnd(ir.CreateLShr(four, kernel_.constant(i % dword_bytes * byte_bits)),
                                       kernel_.constant((1 << byte_bits) - 1));
            }
            write_unit(raised_unit(dwords, half, *exponent), i, half);
          },
          slots);
  }
  return strand;
}

}  // namespace wavejit::attention
