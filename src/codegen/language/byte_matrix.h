// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Products of floats of 8 bits (e4m3), 64 deep, with sums in f32.
//
// An operand is two fragments of 16 bytes a lane, one behind the other: slots 0 … 15, then 16 … 31 of each lane group.
// Which k stands in which slot is the fragments' matter; both operands have to agree. So a row of bytes in memory is
// read as a row of half as many 16-bit elements would be, and the scores of 64 keys that a lane holds in two
// accumulators are, rounded and in order, one operand: key 32a + 8⌊r / 4⌋ + 4g + r mod 4 in slot 16a + r of group g.
#pragma once

#include <array>

#include "codegen/language/fragment.h"
#include "targets/byte_matrix_shape.h"

namespace wavejit::language {

// `value` is <8 x i32>.
struct ByteOperand {
  Value* value = nullptr;
  KOrder k_order = KOrder::contiguous;
};

class ByteMatrix {
 public:
  static constexpr int rows = targets::byte_matrix_rows;
  static constexpr int k_block = targets::byte_matrix_k;  // of an operand
  static constexpr int fragments = 2;                     // of 16 bytes a lane

  // Refuses where the target has no such instruction.
  explicit ByteMatrix(Kernel& kernel);

  // `first` and `second`: <4 x i32> a lane.
  ByteOperand operand(Value* first, Value* second, KOrder order) const;
  // A lane's f32 in two accumulators, each rounded to the nearest e4m3, of two the even one. Beyond 464 is NaN: the
  // caller makes sure that nothing is.
  ByteOperand rounded(const Accumulator& first, const Accumulator& second) const;
  // Two f32 into a half of a dword, whose other half stays. `dword` may be poison.
  Value* rounded(Value* first, Value* second, Value* dword, int half) const;

  AccumulatorLayout accumulator_layout() const;
  Accumulator zeros() const;
  // c + a · b. `scale`: 32 bits whose lowest byte is an e8m0, and the next one 127, that of 1. Column n of b is
  // multiplied by what lane n has there, and lane n + 32 the same. Exact within f32's range.
  Accumulator mma(const ByteOperand& a, const ByteOperand& b, const Accumulator& c, Value* scale = nullptr) const;
  // Sums of B's columns: each row of a product with ones has them.
  Accumulator column_sums(const ByteOperand& b, Value* scale) const;
  // One of its rows, the same in both lanes that share a column. Until here no register of the product is anybody
  // else's: a vector instruction that took one would wait for the product.
  Value* of_columns(const Accumulator& sums) const;

 private:
  Accumulator multiply(Value* a, std::uint32_t format_of_a, const ByteOperand& b, const Accumulator& c,
                       Value* scale) const;

  Kernel& kernel_;
  Value* ones_ = nullptr;  // in registers for good
};

}  // namespace wavejit::language
