// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_backward/emit/shared_weights.h"

#include <cstddef>

#include "codegen/language/lane_place.h"
#include "templates/attention_backward/kernel/ladders.h"

namespace wavejit::attention_backward {

using language::Accumulator;
using language::Strand;
using language::Value;

int SharedWeights::bytes_of_block(language::Kernel& kernel) {
  const int rows = language::wave_shape(kernel).rows;
  return rows * rows * static_cast<int>(sizeof(float));
}

// Lanes stand side by side, a quarter of a block behind the other: 16 bytes each, so no two meet in a bank.
SharedWeights::SharedWeights(language::Kernel& kernel, const language::Lds& lds, int row_blocks, int first_byte,
                             int first_region)
    : kernel_(kernel), lds_(lds), row_blocks_(row_blocks), first_region_(first_region) {
  llvm::IRBuilder<>& ir = kernel.ir();
  Value* owners = ir.CreateUDiv(kernel.wave(), kernel.constant(sharing_waves));
  place_ = ir.CreateAdd(ir.CreateMul(kernel.lane(), kernel.constant(part_bytes)),
                        ir.CreateAdd(ir.CreateMul(owners, kernel.constant(row_blocks * bytes_of_block(kernel))),
                                     kernel.constant(first_byte)));
}

int SharedWeights::at(int buffer, int block, int quarter) const {
  return (buffer * bytes_of_buffer(kernel_, row_blocks_)) + (block * bytes_of_block(kernel_)) +
         (quarter * kernel_.target().wave_size * part_bytes);
}

void SharedWeights::add_give(Strand& strand, const Accumulator& weights, int buffer, int block) const {
  for (int r = 0; r < language::wave_shape(kernel_).registers(); r += 4)
    strand.add(
        [=, this, &weights] {
          llvm::IRBuilder<>& ir = kernel_.ir();
          Value* four = ir.CreateShuffleVector(weights.value, {r, r + 1, r + 2, r + 3});
          lds_.write(first_region_ + buffer, ir.CreateBitCast(four, kernel_.vector(kernel_.i32(), 4)), place_,
                     at(buffer, block, r / 4));
        },
        store_slots);
}

void SharedWeights::add_take(Strand& strand, Accumulator& weights, language::AccumulatorLayout layout, int buffer,
                             int block) const {
  for (int r = 0; r < layout.registers(); r += 4)
    strand.add(
        [=, this, &weights] {
          llvm::IRBuilder<>& ir = kernel_.ir();
          if (r == 0) weights = {llvm::PoisonValue::get(kernel_.vector(kernel_.f32(), layout.registers())), layout};
          Value* four =
              ir.CreateBitCast(lds_.read(first_region_ + buffer, part_bytes, place_, at(buffer, block, r / 4)),
                               kernel_.vector(kernel_.f32(), 4));
          for (int i = 0; i < 4; ++i)
            weights.value =
                ir.CreateInsertElement(weights.value, ir.CreateExtractElement(four, static_cast<std::uint64_t>(i)),
                                       static_cast<std::uint64_t>(r) + static_cast<std::uint64_t>(i));
        },
        load_slots);
}

}  // namespace wavejit::attention_backward
