// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/sparse_indexer/emit/histogram.h"

#include <llvm/IR/IntrinsicsAMDGPU.h>

namespace wavejit::sparse_indexer {
namespace {

using language::Kernel;
using language::Value;

constexpr int count_quad_bytes = 16;

// ds_add_u32. The kernel has one LDS object (codegen/language/lds.h), and no DMA that a scope would tell apart.
void add_to_lds(Kernel& kernel, Value* offset, Value* value) {
  llvm::IRBuilder<>& ir = kernel.ir();
  Value* address = ir.CreateInBoundsGEP(ir.getInt8Ty(), kernel.module().getGlobalVariable("lds", true), offset);
  ir.CreateAtomicRMW(llvm::AtomicRMWInst::Add, address, value, llvm::Align(4), llvm::AtomicOrdering::Monotonic,
                     kernel.context().getOrInsertSyncScopeID("workgroup"));
}

}  // namespace

Value* sum_up_to_lane(Kernel& kernel, Value* value) {
  llvm::IRBuilder<>& ir = kernel.ir();
  for (int distance = 1; distance < kernel.target().wave_size; distance *= 2) {
    Value* from = ir.CreateSub(kernel.lane(), kernel.constant(distance));
    Value* other = ir.CreateIntrinsic(llvm::Intrinsic::amdgcn_ds_bpermute, {}, {ir.CreateShl(from, 2), value});
    value = ir.CreateAdd(value, ir.CreateSelect(ir.CreateICmpSLT(from, kernel.constant(0)), kernel.constant(0), other));
  }
  return value;
}

Histogram::Histogram(Kernel& kernel, const language::Lds& lds, int region, int base, Digit digit)
    : kernel_(kernel), lds_(lds), region_(region), base_(base), digit_(digit) {}

Value* Histogram::digit_of(Value* key) const {
  return kernel_.ir().CreateAnd(kernel_.ir().CreateLShr(key, digit_.shift), kernel_.constant(digit_.count() - 1));
}

void Histogram::add_at(Value* place) const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  add_to_lds(kernel_, ir.CreateAdd(ir.CreateShl(place, 2), kernel_.constant(base_)), kernel_.constant(1));
}

void Histogram::add(Value* key) const { add_at(digit_of(key)); }

void Histogram::add(Value* key, Value* counts) const {
  Value* own = kernel_.ir().CreateAdd(kernel_.lane(), kernel_.constant(most_digits));
  add_at(kernel_.ir().CreateSelect(counts, digit_of(key), own));
}

// A lane has the counts of neighbouring digits, lane 0 those of the largest.
Histogram::End Histogram::end_of_largest(Value* wanted) const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  const int own = digit_.count() / kernel_.target().wave_size;
  Value* lanes_above = ir.CreateSub(kernel_.constant(kernel_.target().wave_size - 1), kernel_.lane());
  Value* first = ir.CreateMul(lanes_above, kernel_.constant(own));
  language::Values counts;
  for (int at = 0; at < own; at += 4) {
    Value* four = lds_.read(region_, count_quad_bytes, ir.CreateShl(first, 2), base_ + (4 * at));
    for (std::uint64_t each = 0; each < 4; ++each) counts.push_back(ir.CreateExtractElement(four, each));
  }
  if (digit_.zero_is_none) {
    Value* has_zero = ir.CreateICmpEQ(first, kernel_.constant(0));
    counts[0] = ir.CreateSelect(has_zero, kernel_.constant(0), counts[0]);
  }
  Value* sum = counts[0];
  for (std::size_t at = 1; at < counts.size(); ++at) sum = ir.CreateAdd(sum, counts[at]);
  Value* up_to = sum_up_to_lane(kernel_, sum);
  Value* before = ir.CreateSub(up_to, sum);
  Value* is_here = ir.CreateAnd(ir.CreateICmpULT(before, wanted), ir.CreateICmpULE(wanted, up_to));

  Value* digit = kernel_.constant(0);
  Value* before_digit = kernel_.constant(0);
  Value* running = before;
  for (int at = own - 1; at >= 0; --at) {
    Value* next = ir.CreateAdd(running, counts[static_cast<std::size_t>(at)]);
    Value* here = ir.CreateAnd(ir.CreateICmpULT(running, wanted), ir.CreateICmpULE(wanted, next));
    digit = ir.CreateSelect(here, ir.CreateAdd(first, kernel_.constant(at)), digit);
    before_digit = ir.CreateSelect(here, running, before_digit);
    running = next;
  }
  Value* lanes = ir.CreateIntrinsic(llvm::Intrinsic::amdgcn_ballot, {kernel_.i64()}, {is_here});
  Value* reached = ir.CreateICmpNE(lanes, ir.getInt64(0));
  Value* lane = ir.CreateTrunc(ir.CreateBinaryIntrinsic(llvm::Intrinsic::cttz, lanes, ir.getFalse()), kernel_.i32());
  lane = ir.CreateAnd(lane, kernel_.constant(kernel_.target().wave_size - 1));
  const auto of_lane = [&](Value* value) {
    return ir.CreateIntrinsic(llvm::Intrinsic::amdgcn_readlane, {kernel_.i32()}, {value, lane});
  };
  return {.digit = of_lane(digit), .wanted = ir.CreateSub(wanted, of_lane(before_digit)), .reached = reached};
}

}  // namespace wavejit::sparse_indexer
