// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention/emit/query_tile.h"

#include <llvm/IR/IntrinsicsAMDGPU.h>

#include "codegen/language/lane_place.h"
#include "codegen/language/synchronize.h"

namespace wavejit::attention {

using language::Kernel;
using language::Value;

Value* lane_made_anew(Kernel& kernel) {
  llvm::IRBuilder<>& ir = kernel.ir();
  Value* all = language::opaque(kernel, kernel.constant(-1));
  Value* lane = ir.CreateIntrinsic(llvm::Intrinsic::amdgcn_mbcnt_lo, {}, {all, kernel.constant(0)});
  return ir.CreateIntrinsic(llvm::Intrinsic::amdgcn_mbcnt_hi, {}, {all, lane});
}

LanePlace lane_place(Kernel& kernel, const QueryTile& tile) {
  if (!tile.lanes_made_anew) return {.row = tile.row, .lane_group = tile.lane_group};
  llvm::IRBuilder<>& ir = kernel.ir();
  Value* lane = lane_made_anew(kernel);
  Value* row =
      tile.group == nullptr ? ir.CreateAdd(tile.first_row_of_wave, language::row_of_lane(kernel, lane)) : tile.row;
  return {.row = row, .lane_group = language::group_of_lane(kernel, lane)};
}

Value* head_of_lane(Kernel& kernel, const QueryTile& tile) {
  if (!tile.lanes_made_anew || tile.first_of_wave == nullptr) return tile.head_in_group;
  llvm::IRBuilder<>& ir = kernel.ir();
  Value* of_lane = ir.CreateAdd(tile.first_of_wave, language::row_of_lane(kernel, lane_made_anew(kernel)));
  return ir.CreateSub(of_lane, ir.CreateMul(tile.row, tile.group));
}

LaneKey lane_key(Kernel& kernel, Value* first_key) {
  llvm::IRBuilder<>& ir = kernel.ir();
  Value* lane = lane_made_anew(kernel);
  return {.key = ir.CreateAdd(first_key, language::row_of_lane(kernel, lane)),
          .lane_group = language::group_of_lane(kernel, lane)};
}

Value* lane_row_offset(Kernel& kernel, const QueryTile& tile, Value* row, Value* row_stride, Value* head_stride) {
  // A slice with the rows by which tiles overrun it is below 4 GiB (the checks of a call): so far from its end.
  llvm::IRBuilder<>& ir = kernel.ir();
  Value* offset = ir.CreateMul(row, row_stride);
  if (tile.group == nullptr) return offset;
  offset = ir.CreateAdd(offset, ir.CreateMul(head_of_lane(kernel, tile), head_stride));
  return ir.CreateSelect(tile.has_row, offset, ir.getInt32(language::far_outside));
}

Value* span_of_heads(Kernel& kernel, const QueryTile& tile, Value* bytes, Value* head_stride) {
  return tile.group == nullptr ? bytes : bytes_of_heads(kernel, tile.group, bytes, head_stride);
}

Value* number_of_head(Kernel& kernel, const QueryTile& tile, Value* numbers) {
  llvm::IRBuilder<>& ir = kernel.ir();
  Value* head = ir.CreateAdd(numbers, ir.CreateShl(ir.CreateZExt(tile.query_head, kernel.i64()), 2));
  if (tile.group == nullptr) return kernel.load_scalar(head, kernel.f32());
  const language::Buffer group(kernel, head, ir.CreateShl(tile.group, 2));
  Value* number = group.load(4, ir.CreateShl(head_of_lane(kernel, tile), 2), kernel.constant(0));
  return ir.CreateBitCast(number, kernel.f32());
}

}  // namespace wavejit::attention
