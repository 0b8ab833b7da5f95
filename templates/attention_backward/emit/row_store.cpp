// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_backward/emit/row_store.h"

#include <llvm/IR/Intrinsics.h>

#include "codegen/language/convert.h"

namespace wavejit::attention_backward {

using language::Kernel;
using language::Value;

// A lane holds blocks of four dims of its row, its own group's; the other group has the four between.
void store_rows(Kernel& kernel, const attention::Slice& slice, Value* row, Value* lane_group, language::Element element,
                bool fp32, std::span<const language::Accumulator> sums, Value* factor) {
  llvm::IRBuilder<>& ir = kernel.ir();
  constexpr int block = 4;
  const int dim_bytes = fp32 ? static_cast<int>(sizeof(float)) : targets::bytes_of(element);
  Value* place =
      ir.CreateAdd(ir.CreateMul(row, slice.row_stride), ir.CreateMul(lane_group, kernel.constant(block * dim_bytes)));
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const language::AccumulatorLayout& layout = sums[i].layout;
    // + 0: how many hidden tiles came behind a sum that underflowed to −0 must not show.
    llvm::Type* type = sums[i].value->getType();
    Value* whole =
        ir.CreateIntrinsic(llvm::Intrinsic::fma, {type},
                           {sums[i].value, ir.CreateVectorSplat(static_cast<unsigned>(layout.registers()), factor),
                            llvm::Constant::getNullValue(type)});
    for (int r = 0; r < layout.registers(); r += block) {
      Value* dwords = fp32 ? ir.CreateBitCast(ir.CreateShuffleVector(whole, {r, r + 1, r + 2, r + 3}),
                                              kernel.vector(kernel.i32(), block))
                           : language::gather_dwords(kernel, language::convert_packed(kernel, whole, r, block, element,
                                                                                      language::NanInput::kept));
      const int dim = (static_cast<int>(i) * layout.rows) + layout.row_of_register(r);
      slice.buffer.store(dwords, ir.CreateAdd(place, kernel.constant(dim * dim_bytes)), kernel.constant(0));
    }
  }
}

}  // namespace wavejit::attention_backward
