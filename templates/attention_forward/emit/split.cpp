// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/emit/split.h"

#include "codegen/language/buffer.h"
#include "codegen/language/convert.h"
#include "templates/attention_forward/call/arguments.h"
#include "templates/attention_forward/call/combine/parameters.h"
#include "templates/attention_forward/emit/combine/workspace.h"

namespace wavejit::attention_forward {
namespace {

using language::Kernel;
using language::Value;

// floor(x · multiplier / 2³²), with a multiplier of 0 standing for 2³²: x divided by what the multiplier was made for.
Value* quotient(Kernel& kernel, Value* x, std::size_t multiplier_field) {
  llvm::IRBuilder<>& ir = kernel.ir();
  Value* multiplier = kernel.argument_i32(multiplier_field);
  Value* product = ir.CreateMul(ir.CreateZExt(x, kernel.i64()), ir.CreateZExt(multiplier, kernel.i64()));
  Value* high = ir.CreateTrunc(ir.CreateLShr(product, 32), kernel.i32());
  return ir.CreateSelect(ir.CreateICmpEQ(multiplier, kernel.constant(0)), x, high);
}

}  // namespace

GridPlace place_of(Kernel& kernel, Value* grid_x) {
  llvm::IRBuilder<>& ir = kernel.ir();
  Value* split = quotient(kernel, grid_x, offsetof(Arguments, query_head_multiplier));
  Value* heads = kernel.argument_i32(offsetof(Arguments, query_heads));
  return {.query_head = ir.CreateSub(grid_x, ir.CreateMul(split, heads)), .split = split};
}

KeyTiles tiles_of_run(Kernel& kernel, const KernelSpec& spec, Value* split, Value* key_length) {
  llvm::IRBuilder<>& ir = kernel.ir();
  Value* chunk = kernel.constant(spec.split_keys);
  Value* splits = kernel.argument_i32(offsetof(Arguments, splits));
  Value* one = kernel.constant(1);
  const auto ceiling = [&](Value* sum, Value* of) { return ir.CreateSub(ir.CreateAdd(sum, of), one); };
  Value* chunks = ir.CreateUDiv(ceiling(key_length, chunk), chunk);
  Value* chunks_a_run = quotient(kernel, ceiling(chunks, splits), offsetof(Arguments, split_multiplier));
  Value* tiles = ir.CreateMul(chunks_a_run, kernel.constant(spec.split_keys / spec.tile_keys));
  Value* first = ir.CreateMul(split, tiles);
  return {.first = first, .last = ir.CreateSub(ir.CreateAdd(first, tiles), one)};
}

void store_partial_results(Kernel& kernel, const KernelSpec& spec, const Workgroup& workgroup,
                           std::span<const language::Accumulator> outputs, Value* maximum, Value* sum) {
  llvm::IRBuilder<>& ir = kernel.ir();
  const attention_combine::WorkspacePlace place = {
      .workspace = kernel.argument_i64(offsetof(Arguments, workspace)),
      .splits = kernel.argument_i32(offsetof(Arguments, splits)),
      .query_heads = kernel.argument_i32(offsetof(Arguments, query_heads)),
      // Packed sequences follow each other as in q.
      .batch = ir.CreateSelect(ir.CreateIsNull(kernel.argument_i64(offsetof(Arguments, query_starts))), workgroup.batch,
                               kernel.constant(0)),
      .query_head = workgroup.query_head,
      .rows_of_head = kernel.argument_i32(offsetof(Arguments, query_rows)),
      .first_row = ir.CreateAdd(workgroup.query_start, workgroup.first_row),
  };
  // This workgroup's rows, each one record of this split; rows past the end are dropped by the descriptor.
  Value* row_stride = attention_combine::row_bytes(kernel, place, spec.head_dim_v);
  Value* rows =
      ir.CreateBinaryIntrinsic(llvm::Intrinsic::smin, ir.CreateSub(workgroup.query_length, workgroup.first_row),
                               kernel.constant(spec.tile_queries));
  const int record = attention_combine::record_bytes(spec.head_dim_v);
  const language::Buffer partial(kernel,
                                 attention_combine::record_address(kernel, place, spec.head_dim_v, workgroup.split),
                                 language::slice_bytes(kernel, rows, row_stride, record));

  // A lane holds blocks of four dims of its row, its own group's.
  Value* no_offset = kernel.constant(0);
  Value* row = ir.CreateMul(ir.CreateSub(workgroup.row, workgroup.first_row), row_stride);
  Value* group = ir.CreateAdd(row, ir.CreateMul(workgroup.lane_group, kernel.constant(16)));
  for (std::size_t block = 0; block < outputs.size(); ++block) {
    const language::AccumulatorLayout& layout = outputs[block].layout;
    for (int r = 0; r < layout.registers(); r += layout.row_block) {
      Value* four = ir.CreateShuffleVector(outputs[block].value, {r, r + 1, r + 2, r + 3});
      const int dim = static_cast<int>(block) * layout.rows + layout.row_of_register(r);
      partial.store(ir.CreateBitCast(four, kernel.vector(kernel.i32(), 4)),
                    ir.CreateAdd(group, kernel.constant(dim * 4)), no_offset);
    }
  }
  // One lane of the two that own a row writes; the other points far outside and is dropped.
  Value* const statistics[] = {ir.CreateBitCast(maximum, kernel.i32()), ir.CreateBitCast(sum, kernel.i32())};
  Value* writes = ir.CreateICmpEQ(workgroup.lane_group, kernel.constant(0));
  Value* offset =
      ir.CreateSelect(writes, ir.CreateAdd(row, kernel.constant(spec.head_dim_v * 4)), ir.getInt32(0x80000000));
  partial.store(language::gather_dwords(kernel, statistics), offset, no_offset);
}

}  // namespace wavejit::attention_forward
