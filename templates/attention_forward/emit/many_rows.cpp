// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/emit/many_rows.h"

#include <llvm/IR/IntrinsicsAMDGPU.h>

#include "codegen/language/buffer.h"
#include "codegen/language/control.h"
#include "templates/attention/emit/integers.h"
#include "templates/attention_forward/kernel/row_limits.h"

namespace wavejit::attention_forward {
namespace {

using language::Buffer;
using language::Kernel;
using language::Value;
using language::Values;

// Tiles of one sequence a lane, from `first` on; 0 of short ones, and beyond the last, where starts read 0. Starts are
// cut to the rows as emit/sequence.cpp does it.
Value* tiles_of_lanes(Kernel& kernel, const ForwardKernel& spec, const Buffer& starts, Value* first) {
  llvm::IRBuilder<>& ir = kernel.ir();
  Value* rows = kernel.argument_i32((offsetof(Arguments, sequences) + offsetof(SequenceArguments, query_rows)));
  Value* place = ir.CreateShl(ir.CreateAdd(first, kernel.lane()), 2);
  Value* start = starts.load(4, place, kernel.constant(0));
  Value* end = starts.load(4, ir.CreateAdd(place, kernel.constant(4)), kernel.constant(0));
  start = minimum(kernel, maximum(kernel, start, kernel.constant(0)), rows);
  end = minimum(kernel, maximum(kernel, end, start), rows);
  Value* length = minimum(kernel, ir.CreateSub(end, start), kernel.argument_i32(offsetof(Arguments, query_length)));
  Value* tile = kernel.constant(spec.tile_queries);
  Value* tiles = ir.CreateUDiv(ir.CreateAdd(length, kernel.constant(spec.tile_queries - 1)), tile);
  Value* few = kernel.argument_i32(limit_field(offsetof(RowLimits, few_rows)));
  return ir.CreateSelect(ir.CreateICmpSGT(length, few), tiles, kernel.constant(0));
}

// The sum of each lane's value and of those of all lanes below it.
Value* sum_up_to_lanes(Kernel& kernel, Value* value) {
  llvm::IRBuilder<>& ir = kernel.ir();
  for (int lanes = 1; lanes < kernel.target().wave_size; lanes *= 2) {
    Value* lane = ir.CreateSub(kernel.lane(), kernel.constant(lanes));
    Value* below =
        ir.CreateIntrinsic(llvm::Intrinsic::amdgcn_ds_bpermute, {}, {ir.CreateShl(lane, kernel.constant(2)), value});
    Value* has_below = ir.CreateICmpUGE(kernel.lane(), kernel.constant(lanes));
    value = ir.CreateAdd(value, ir.CreateSelect(has_below, below, kernel.constant(0)));
  }
  return value;
}

Value* of_lane(Kernel& kernel, Value* value, Value* lane) {
  return kernel.ir().CreateIntrinsic(llvm::Intrinsic::amdgcn_readlane, {kernel.i32()}, {value, lane});
}

// The first lane that sees the condition; wave_size where none does.
Value* first_lane(Kernel& kernel, Value* condition) {
  llvm::IRBuilder<>& ir = kernel.ir();
  llvm::Type* mask = kernel.ir().getIntNTy(static_cast<unsigned>(kernel.target().wave_size));
  Value* ballot = ir.CreateIntrinsic(llvm::Intrinsic::amdgcn_ballot, {mask}, {condition});
  Value* lane = ir.CreateBinaryIntrinsic(llvm::Intrinsic::cttz, ballot, ir.getFalse());
  return ir.CreateZExtOrTrunc(lane, kernel.i32());
}

}  // namespace

TilePlace find_tile(Kernel& kernel, const ForwardKernel& spec) {
  llvm::IRBuilder<>& ir = kernel.ir();
  const int lanes = kernel.target().wave_size;
  Value* tiles_of_z = kernel.argument_i32(limit_field(offsetof(RowLimits, tiles_of_z)));
  Value* sequences = kernel.argument_i32(limit_field(offsetof(RowLimits, sequences)));
  Value* sought = ir.CreateAdd(kernel.workgroup_y(), ir.CreateMul(kernel.workgroup_z(), tiles_of_z));
  Value* bytes = ir.CreateShl(ir.CreateAdd(sequences, kernel.constant(1)), 2);
  const Buffer starts(
      kernel, kernel.argument_i64((offsetof(Arguments, sequences) + offsetof(SequenceArguments, query_starts))), bytes);

  // The first of the next sequences; the tiles before the one that is sought, among theirs and those that follow; the
  // sequence that was found, or −1; the tile in it.
  enum : std::size_t { next, before, sequence, tile };
  const Values end = language::loop_in_phases(
      kernel, 1, {kernel.constant(0), sought, kernel.constant(-1), kernel.constant(0)},
      [&](int, const Values& state) -> Values {
        Value* tiles = tiles_of_lanes(kernel, spec, starts, state[next]);
        Value* sums = sum_up_to_lanes(kernel, tiles);
        Value* lane = first_lane(kernel, ir.CreateICmpSGT(sums, state[before]));
        Value* found = ir.CreateICmpSLT(lane, kernel.constant(lanes));
        Value* its = ir.CreateAnd(lane, kernel.constant(lanes - 1));
        Value* tiles_before = ir.CreateSub(of_lane(kernel, sums, its), of_lane(kernel, tiles, its));
        Value* all = of_lane(kernel, sums, kernel.constant(lanes - 1));
        return {ir.CreateAdd(state[next], kernel.constant(lanes)), ir.CreateSub(state[before], all),
                ir.CreateSelect(found, ir.CreateAdd(state[next], its), kernel.constant(-1)),
                ir.CreateSub(state[before], tiles_before)};
      },
      [&](const Values& state) {
        return ir.CreateAnd(ir.CreateICmpSLT(state[sequence], kernel.constant(0)),
                            ir.CreateICmpSLT(state[next], sequences));
      });
  language::leave_if(kernel, ir.CreateICmpSLT(end[sequence], kernel.constant(0)));
  return {.sequence = end[sequence], .tile = end[tile]};
}

}  // namespace wavejit::attention_forward
