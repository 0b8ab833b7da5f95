// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention/emit/arrivals.h"

#include <llvm/IR/IntrinsicsAMDGPU.h>

#include "codegen/language/buffer.h"
#include "codegen/language/synchronize.h"
#include "templates/attention/emit/query_tile.h"

namespace wavejit::attention {

using language::Kernel;
using language::Value;

namespace {

constexpr std::uint32_t nowhere = 0x80000000;

// The order of the IR around here, which the backend keeps: no instruction comes of it.
void fence(Kernel& kernel) {
  kernel.ir().CreateFence(llvm::AtomicOrdering::SequentiallyConsistent,
                          kernel.context().getOrInsertSyncScopeID("singlethread"));
}

}  // namespace

Value* arrives_last(Kernel& kernel, Value* counters, Value* counter, Value* others) {
  llvm::IRBuilder<>& ir = kernel.ir();
  language::wait_for_lds_fills(kernel);  // its stores, too: one counter holds them all
  language::barrier(kernel);
  fence(kernel);
  // One lane counts: the others point behind the end, where nothing is done. Without further bits such an instruction
  // is the agent's.
  const language::Buffer all(kernel, counters, ir.getInt32(nowhere - 1));
  Value* is_first = ir.CreateICmpEQ(lane_made_anew(kernel), kernel.constant(0));
  Value* place = ir.CreateSelect(is_first, kernel.constant(0), ir.getInt32(nowhere));
  Value* before = ir.CreateIntrinsic(llvm::Intrinsic::amdgcn_raw_ptr_buffer_atomic_inc, {kernel.i32()},
                                     {others, all.descriptor(), place, ir.CreateShl(counter, 2), kernel.constant(0)});
  Value* counted = ir.CreateIntrinsic(llvm::Intrinsic::amdgcn_readlane, {kernel.i32()}, {before, kernel.constant(0)});
  fence(kernel);
  return ir.CreateICmpEQ(counted, others);
}

}  // namespace wavejit::attention
