// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/emit/tile_growths.h"

#include "codegen/language/control.h"

namespace wavejit::attention_forward {

using language::Kernel;
using language::Value;

TileGrowths growths_of(Kernel& kernel, const language::Softmax& softmax, Value* maximum,
                       const language::Values& maxima) {
  llvm::IRBuilder<>& ir = kernel.ir();
  TileGrowths growths;
  for (Value* of_tile : maxima) {
    Value* raised = ir.CreateBinaryIntrinsic(llvm::Intrinsic::maxnum, of_tile, maximum);
    Value* grows = softmax.grows(maximum, raised);
    growths.push_back({maximum, raised, grows, ir.CreateSelect(grows, raised, maximum)});
    maximum = growths.back().maximum;
  }
  return growths;
}

Value* maximum_behind_own(Kernel& kernel, const TileGrowths& growths) {
  llvm::IRBuilder<>& ir = kernel.ir();
  Value* own = growths.front().maximum;
  for (std::size_t each = 1; each < growths.size(); ++each)
    own = ir.CreateSelect(ir.CreateICmpEQ(kernel.wave(), kernel.constant(static_cast<int>(each))),
                          growths[each].maximum, own);
  return own;
}

Value* any_grows(Kernel& kernel, const TileGrowths& growths) {
  Value* grows = growths.front().grows;
  for (std::size_t tile = 1; tile < growths.size(); ++tile) grows = kernel.ir().CreateOr(grows, growths[tile].grows);
  return language::any_lane(kernel, grows);
}

}  // namespace wavejit::attention_forward
