// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_backward/emit/row_store.h"

#include <llvm/IR/Intrinsics.h>

#include "codegen/language/convert.h"
#include "codegen/language/cross_lane.h"
#include "codegen/language/lane_place.h"

namespace wavejit::attention_backward {

using language::Kernel;
using language::Value;

namespace {

// A lane holds blocks of four or eight dims of its row (AccumulatorLayout::row_block), its own group's; the other group
// has the ones between. What is loaded and stored, at most, of f32:
constexpr int block = 4;

// `group_dims`: between the first dims of the two groups.
Value* place_of(Kernel& kernel, const attention::Slice& slice, Value* row, Value* lane_group, int dim_bytes,
                int group_dims) {
  llvm::IRBuilder<>& ir = kernel.ir();
  return ir.CreateAdd(ir.CreateMul(row, slice.row_stride),
                      ir.CreateMul(lane_group, kernel.constant(group_dims * dim_bytes)));
}

// Two blocks of a lane, packed, and the two between that the other group has: as the eight dims of one that stand side
// by side, the first block's in one group and the second's in the other.
Value* side_by_side(Kernel& kernel, Value* first, Value* second) {
  llvm::IRBuilder<>& ir = kernel.ir();
  constexpr std::uint64_t dwords = 2;
  Value* eight = llvm::PoisonValue::get(kernel.vector(kernel.i32(), 2 * dwords));
  for (std::uint64_t i = 0; i < dwords; ++i) {
    const auto [low, high] =
        language::swap_halves(kernel, ir.CreateExtractElement(first, i), ir.CreateExtractElement(second, i));
    eight = ir.CreateInsertElement(eight, low, i);
    eight = ir.CreateInsertElement(eight, high, dwords + i);
  }
  return eight;
}
int dim_of(const language::AccumulatorLayout& layout, std::size_t number, int r) {
  return (static_cast<int>(number) * layout.rows) + layout.row_of_register(r);
}

}  // namespace

void store_rows(Kernel& kernel, const attention::Slice& slice, Value* row, Value* lane_group, language::Element element,
                bool fp32, std::span<const language::Accumulator> sums, Value* factor) {
  llvm::IRBuilder<>& ir = kernel.ir();
  const int dim_bytes = fp32 ? static_cast<int>(sizeof(float)) : targets::bytes_of(element);
  // Stores of 16 bytes: an address unit takes as long for half of it.
  const bool swaps = !fp32 && kernel.target().permlane32_swap && language::wave_shape(kernel).groups() == 2;
  const int row_block = kernel.target().row_block;
  Value* place = place_of(kernel, slice, row, lane_group, dim_bytes, swaps ? 2 * block : row_block);
  // 16 bytes, or what of them a lane has side by side.
  const int stored = fp32 ? block : row_block;
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const language::AccumulatorLayout& layout = sums[i].layout;
    // + 0: how many hidden tiles came behind a sum that underflowed to −0 must not show.
    llvm::Type* type = sums[i].value->getType();
    Value* whole =
        ir.CreateIntrinsic(llvm::Intrinsic::fma, {type},
                           {sums[i].value, ir.CreateVectorSplat(static_cast<unsigned>(layout.registers()), factor),
                            llvm::Constant::getNullValue(type)});
    const auto block_from = [&](int r) {
      return fp32 ? ir.CreateBitCast(ir.CreateShuffleVector(whole, {r, r + 1, r + 2, r + 3}),
                                     kernel.vector(kernel.i32(), block))
                  : language::gather_dwords(
                        kernel, language::convert_packed(kernel, whole, r, stored, element, language::NanInput::kept));
    };
    for (int r = 0; r < layout.registers(); r += swaps ? 2 * block : stored) {
      Value* dwords = swaps ? side_by_side(kernel, block_from(r), block_from(r + block)) : block_from(r);
      const int dim = dim_of(layout, i, r);
      slice.buffer.store(dwords, ir.CreateAdd(place, kernel.constant(dim * dim_bytes)), kernel.constant(0));
    }
  }
}

Value* load_four(Kernel& kernel, const attention::Slice& slice, Value* row, Value* lane_group,
                 const language::AccumulatorLayout& layout, std::size_t number, int r) {
  llvm::IRBuilder<>& ir = kernel.ir();
  Value* place = ir.CreateAdd(place_of(kernel, slice, row, lane_group, 4, layout.row_block),
                              kernel.constant(dim_of(layout, number, r) * 4));
  return ir.CreateBitCast(slice.buffer.load(4 * block, place, kernel.constant(0)), kernel.vector(kernel.f32(), block));
}

std::vector<language::Accumulator> load_rows(Kernel& kernel, const attention::Slice& slice, Value* row,
                                             Value* lane_group, const language::AccumulatorLayout& layout,
                                             std::size_t count) {
  llvm::IRBuilder<>& ir = kernel.ir();
  std::vector<language::Accumulator> sums;
  for (std::size_t number = 0; number < count; ++number) {
    Value* whole = llvm::PoisonValue::get(kernel.vector(kernel.f32(), layout.registers()));
    for (int r = 0; r < layout.registers(); r += block) {
      Value* four = load_four(kernel, slice, row, lane_group, layout, number, r);
      for (int part = 0; part < block; ++part)
        whole = ir.CreateInsertElement(whole, ir.CreateExtractElement(four, static_cast<std::uint64_t>(part)),
                                       static_cast<std::uint64_t>(r) + static_cast<std::uint64_t>(part));
    }
    sums.push_back({whole, layout});
  }
  return sums;
}

}  // namespace wavejit::attention_backward
