// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/emit/workgroup.h"

#include "codegen/language/lane_place.h"
#include "codegen/language/synchronize.h"
#include "templates/attention_forward/emit/late_slices.h"
#include "templates/attention_forward/emit/positions.h"
#include "templates/attention_forward/kernel/arguments.h"
#include "templates/attention_forward/kernel/parameters.h"

namespace wavejit::attention_forward {

using language::Kernel;
using language::Value;

int waves_with_outputs(const ForwardKernel& spec, int rows_of_block) { return spec.waves_with_dims(rows_of_block); }

int output_blocks_of_wave(const ForwardKernel& spec, int rows_of_block) {
  const int blocks = blocks_of_dims(spec.head_dim_v, rows_of_block);
  return spec.chunk_waves == 0 ? blocks : blocks / waves_with_outputs(spec, rows_of_block);
}

RowOfTile row_of_tile(Kernel& kernel, const ForwardKernel& spec, const Workgroup& workgroup, Value* row) {
  llvm::IRBuilder<>& ir = kernel.ir();
  const Positions positions(kernel, spec.packed_heads ? workgroup.group : nullptr);
  Value* of_all = ir.CreateAdd(workgroup.first_of_tile, row);
  Value* position = positions.position(of_all);
  return {.position = position,
          .head = spec.packed_heads ? ir.CreateSub(of_all, positions.rows(position)) : nullptr,
          .exists = ir.CreateICmpULT(of_all, workgroup.rows)};
}

Value* begin_of_query_row(Kernel& kernel, const ForwardKernel& spec, const Workgroup& workgroup, Value* row) {
  llvm::IRBuilder<>& ir = kernel.ir();
  Value* of_tile = ir.CreateICmpULT(row, kernel.constant(language::wave_shape(kernel).rows));
  const RowOfTile place = row_of_tile(kernel, spec, workgroup, row);
  Value* offset = ir.CreateMul(place.position, workgroup.q.row_stride);
  if (place.head != nullptr) offset = ir.CreateAdd(offset, ir.CreateMul(place.head, workgroup.q.head_stride));
  return ir.CreateSelect(ir.CreateAnd(of_tile, place.exists), offset, ir.getInt32(language::far_outside));
}

void ask_for_walk(Kernel& kernel, const ForwardKernel& spec, const Workgroup& workgroup) {
  language::Values asked = {workgroup.scale_log2e, workgroup.rescale_threshold};
  if (spec.split_keys != 0) {
    asked.push_back(kernel.argument_i64(offsetof(Arguments, workspace)));
    asked.push_back(kernel.argument_i32(offsetof(Arguments, query_heads)));
  }
  language::pin_scalars(kernel, asked);
}

namespace {

// What the backend would otherwise load into registers that others of the first arguments have come to, or where it is
// used, once those have arrived: a wait more in front of the first request of memory.
void ask_for_first_arguments(Kernel& kernel, const ForwardKernel& spec) {
  language::Values asked = {
      kernel.argument_i32(offsetof(Arguments, o_row_stride)), kernel.argument_i32(offsetof(Arguments, scale_log2e)),
      kernel.argument_i32(offsetof(Arguments, scores) + offsetof(ScoreArguments, rescale_threshold))};
  if (spec.split_keys != 0) {
    asked.push_back(kernel.argument_i64(offsetof(Arguments, workspace)));
    asked.push_back(kernel.argument_i32(offsetof(Arguments, query_heads)));
  } else {
    for (const std::size_t field :
         {o_fields.pointer, o_fields.batch_stride, o_fields.head_stride, offsetof(Arguments, sink)})
      asked.push_back(kernel.argument_i64(field));
    asked.push_back(kernel.argument_i32(o_fields.head_stride));
  }
  language::pin_scalars(kernel, asked);
}

}  // namespace

Workgroup begin_workgroup(Kernel& kernel, const ForwardKernel& spec) {
  if (has_scalars_left(spec)) ask_for_first_arguments(kernel, spec);
  const WorkgroupPlace place = find_place(kernel, spec);
  return begin_tile(kernel, spec, place, place.query_tile);
}

}  // namespace wavejit::attention_forward
