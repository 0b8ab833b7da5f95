// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/emit/split.h"

#include <llvm/IR/InlineAsm.h>

#include "codegen/language/buffer.h"
#include "templates/attention/emit/integers.h"
#include "templates/attention/emit/listed_keys.h"
#include "templates/attention_forward/emit/combine/workspace.h"
#include "templates/attention_forward/kernel/arguments.h"
#include "templates/attention_forward/kernel/combine/parameters.h"
#include "templates/attention_forward/kernel/key_list_arguments.h"
#include "templates/attention_forward/kernel/row_limits.h"

namespace wavejit::attention_forward {
namespace {

using language::Kernel;
using language::Value;

// x divided by what the multiplier was made for.
Value* quotient(Kernel& kernel, Value* x, std::size_t multiplier_field) {
  return divided(kernel, x, kernel.argument_i32(multiplier_field));
}

}  // namespace

GridPlace place_of(Kernel& kernel, const ForwardKernel& spec, Value* grid_x) {
  llvm::IRBuilder<>& ir = kernel.ir();
  Value* split = quotient(kernel, grid_x, offsetof(Arguments, query_head_multiplier));
  Value* heads =
      kernel.argument_i32(spec.packed_heads ? offsetof(Arguments, kv_heads) : offsetof(Arguments, query_heads));
  return {.query_head = ir.CreateSub(grid_x, ir.CreateMul(split, heads)), .split = split};
}

KeyTiles tiles_of_run(Kernel& kernel, Value* split, Value* key_length, int chunk_keys, bool merged) {
  llvm::IRBuilder<>& ir = kernel.ir();
  Value* chunk = kernel.constant(chunk_keys);
  Value* splits = kernel.argument_i32(offsetof(Arguments, splits));
  Value* one = kernel.constant(1);
  const auto ceiling = [&](Value* sum, Value* of) { return ir.CreateSub(ir.CreateAdd(sum, of), one); };
  Value* chunks = ir.CreateUDiv(ceiling(key_length, chunk), chunk);
  Value* chunks_a_run = quotient(kernel, ceiling(chunks, splits), offsetof(Arguments, split_multiplier));
  // Somebody ends the rows of a sequence without keys.
  if (merged) chunks_a_run = attention::maximum(kernel, chunks_a_run, one);
  Value* tiles = ir.CreateMul(chunks_a_run, kernel.constant(chunk_keys / tile_keys));
  Value* first = ir.CreateMul(split, tiles);
  return {.first = first, .last = ir.CreateSub(ir.CreateAdd(first, tiles), one), .count = tiles};
}

namespace {

// Where the chunk's part stands in the row of the workspace.
Value* slot_of_chunk(Kernel& kernel, const ForwardKernel& spec, Value* chunk) {
  if (!spec.listed) return chunk;
  return kernel.ir().CreateAdd(
      chunk, attention::list_number(kernel, key_lists_at, offsetof(attention::KeyListArguments, first_part)));
}

// Rows of a head between one and the next.
Value* rows_of_head(Kernel& kernel, const ForwardKernel& spec) {
  return kernel.argument_i32(spec.shares_call()
                                 ? limit_field(offsetof(RowLimits, few_rows))
                                 : (offsetof(Arguments, sequences) + offsetof(SequenceArguments, query_rows)));
}

attention_combine::WorkspacePlace place_of_rows(Kernel& kernel, const ForwardKernel& spec, const Workgroup& workgroup) {
  llvm::IRBuilder<>& ir = kernel.ir();
  return {
      .workspace = kernel.argument_i64(offsetof(Arguments, workspace)),
      .slots = spec.listed ? attention::list_number(kernel, key_lists_at, offsetof(attention::KeyListArguments, parts))
                           : attention_combine::slots_of(kernel, kernel.argument_i32(offsetof(Arguments, key_length))),
      .query_heads = kernel.argument_i32(offsetof(Arguments, query_heads)),
      // Packed sequences follow each other as in q, unless longer ones stand between them.
      .batch = spec.shares_call()
                   ? workgroup.batch
                   : ir.CreateSelect(ir.CreateIsNull(kernel.argument_i64(
                                         (offsetof(Arguments, sequences) + offsetof(SequenceArguments, query_starts)))),
                                     workgroup.batch, kernel.constant(0)),
      .query_head = workgroup.query_head,
      .rows_of_head = rows_of_head(kernel, spec),
      .first_row = spec.shares_call() ? workgroup.first_row : ir.CreateAdd(workgroup.query_start, workgroup.first_row),
  };
}

// How many rows of the workspace stand between the lane's row and the tile's first. Opaque: addresses that come of it
// are made where they are used, and not carried round the loop in registers.
Value* in_query_tile(Kernel& kernel, const ForwardKernel& spec, const Workgroup& workgroup, Value* row_of_sequence) {
  llvm::IRBuilder<>& ir = kernel.ir();
  Value* row = ir.CreateSub(row_of_sequence, workgroup.first_row);
  if (workgroup.group != nullptr) {
    row = ir.CreateAdd(row, ir.CreateMul(head_of_lane(kernel, workgroup), rows_of_head(kernel, spec)));
  }
  llvm::FunctionType* type = llvm::FunctionType::get(row->getType(), {row->getType()}, false);
  llvm::CallInst* call = kernel.ir().CreateCall(llvm::InlineAsm::get(type, "", "=v,0", true), {row});
  call->setMemoryEffects(llvm::MemoryEffects::inaccessibleMemOnly());
  return call;
}

Value* row_stride_of(Kernel& kernel, const ForwardKernel& spec, const Workgroup& workgroup) {
  return attention_combine::row_bytes(kernel, place_of_rows(kernel, spec, workgroup), spec.head_dim_v);
}

}  // namespace

PartRecords::PartRecords(Kernel& kernel, const ForwardKernel& spec, const Workgroup& workgroup, Value* chunk)
    : kernel_(kernel),
      head_dim_(spec.head_dim_v),
      place_(lane_place(kernel, workgroup)),
      share_(workgroup.share),
      reach_(spec.merged ? language::Reach::agent : language::Reach::cached),
      slots_(place_of_rows(kernel, spec, workgroup).slots),
      slot_(slot_of_chunk(kernel, spec, chunk)),
      row_(kernel.ir().CreateMul(in_query_tile(kernel, spec, workgroup, place_.row),
                                 row_stride_of(kernel, spec, workgroup))),
      records_(records_of_tile(kernel, spec, workgroup)) {
  if (workgroup.group == nullptr) return;
  row_ = kernel.ir().CreateSelect(workgroup.has_row, row_, kernel.ir().getInt32(0x80000000));
}

// Rows past the end are dropped by the descriptor.
language::Buffer records_of_tile(Kernel& kernel, const ForwardKernel& spec, const Workgroup& workgroup) {
  llvm::IRBuilder<>& ir = kernel.ir();
  const attention_combine::WorkspacePlace place = place_of_rows(kernel, spec, workgroup);
  Value* row_stride = attention_combine::row_bytes(kernel, place, spec.head_dim_v);
  Value* rows = attention::minimum(kernel, ir.CreateSub(workgroup.query_length, workgroup.first_row),
                                   kernel.constant(spec.tile_queries));
  return {
      kernel, attention_combine::row_address(kernel, place, spec.head_dim_v),
      span_of_heads(kernel, workgroup, ir.CreateMul(rows, row_stride), ir.CreateMul(place.rows_of_head, row_stride))};
}

Value* offset_in_tile(Kernel& kernel, const ForwardKernel& spec, const Workgroup& of_lane) {
  llvm::IRBuilder<>& ir = kernel.ir();
  Value* row = ir.CreateMul(in_query_tile(kernel, spec, of_lane, of_lane.row), row_stride_of(kernel, spec, of_lane));
  return ir.CreateSelect(of_lane.has_row, row, ir.getInt32(0x80000000));
}

// A lane holds blocks of four or eight dims of its row, its own group's.
void PartRecords::store_output(std::size_t block, const language::Accumulator& output) const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  const language::AccumulatorLayout& layout = output.layout;
  Value* group = ir.CreateAdd(
      row_, ir.CreateMul(place_.lane_group, kernel_.constant(layout.row_block * static_cast<int>(sizeof(float)))));
  if (share_.first_dim != nullptr)
    group = ir.CreateAdd(group, ir.CreateMul(share_.first_dim, kernel_.constant(static_cast<int>(sizeof(float)))));
  group = ir.CreateAdd(group, attention_combine::output_offset(kernel_, slot_, head_dim_));
  constexpr int dims_of_store = 4;
  for (int r = 0; r < layout.registers(); r += dims_of_store) {
    Value* four = ir.CreateShuffleVector(output.value, {r, r + 1, r + 2, r + 3});
    const int dim = (static_cast<int>(block) * layout.rows) + layout.row_of_register(r);
    if (dim >= head_dim_) break;  // of what a block pads
    Value* offset = ir.CreateAdd(group, kernel_.constant(dim * 4));
    // The other lane group may have nothing of a last run of eight.
    if (dim + layout.row_block >= head_dim_)
      offset = ir.CreateSelect(ir.CreateICmpEQ(place_.lane_group, kernel_.constant(0)), offset,
                               ir.getInt32(language::far_outside));
    records_.store(ir.CreateBitCast(four, kernel_.vector(kernel_.i32(), 4)), offset, kernel_.constant(0), reach_);
  }
}

void PartRecords::store_maximum(Value* maximum) const { store_statistic(0, maximum); }
void PartRecords::store_sum(Value* sum) const { store_statistic(1, sum); }

// One lane of the two that own a row writes; the other points far outside and is dropped.
void PartRecords::store_statistic(int dword, Value* value) const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  Value* writes = ir.CreateICmpEQ(place_.lane_group, kernel_.constant(0));
  if (share_.leads != nullptr) writes = ir.CreateAnd(writes, share_.leads);
  Value* offset = ir.CreateSelect(writes, ir.CreateAdd(row_, kernel_.constant(dword * static_cast<int>(sizeof(float)))),
                                  ir.getInt32(0x80000000));
  records_.store(ir.CreateBitCast(value, kernel_.i32()), offset,
                 attention_combine::statistics_offset(kernel_, slots_, slot_, head_dim_), reach_);
}

}  // namespace wavejit::attention_forward
