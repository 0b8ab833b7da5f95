// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "codegen/language/synchronize.h"

#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/IntrinsicsAMDGPU.h>

namespace wavejit::language {
namespace {

// The immediate of s_waitcnt on GFX9 (CDNA3 ISA, S_WAITCNT): vmcnt in bits 3:0 and 15:14, expcnt in 6:4, lgkmcnt in
// 11:8. All ones means "do not wait".
constexpr unsigned no_wait = 0xFF7F;
constexpr unsigned vmcnt_bits = 0xC00F;
constexpr unsigned lgkmcnt_bits = 0x0F00;

void wait(Kernel& kernel, unsigned cleared) {
  kernel.ir().CreateIntrinsic(llvm::Intrinsic::amdgcn_s_waitcnt, {}, {kernel.ir().getInt32(no_wait & ~cleared)});
}

// Where each kind of access has a counter of its own.
void wait_split(Kernel& kernel, llvm::Intrinsic::ID counter, int left) {
  kernel.ir().CreateIntrinsic(counter, {}, {kernel.ir().getInt16(static_cast<std::uint16_t>(left))});
}

}  // namespace

void wait_for_lds(Kernel& kernel) {
  if (kernel.target().split_wait_counters) return wait_split(kernel, llvm::Intrinsic::amdgcn_s_wait_dscnt, 0);
  wait(kernel, lgkmcnt_bits);
}
void wait_for_lds_fills(Kernel& kernel) { wait_for_lds_and_fills(kernel, 0); }
void wait_for_lds_and_fills(Kernel& kernel, int fills_left) {
  constexpr int largest_count = 63;  // six bits
  if (fills_left < 0 || fills_left > largest_count) {
    kernel.refuse("a wait that leaves " + std::to_string(fills_left) + " transfers; accepted: 0 to " +
                  std::to_string(largest_count));
    return;
  }
  if (kernel.target().split_wait_counters) {
    wait_split(kernel, llvm::Intrinsic::amdgcn_s_wait_loadcnt, fills_left);
    wait_split(kernel, llvm::Intrinsic::amdgcn_s_wait_dscnt, 0);
    return;
  }
  const auto left = static_cast<unsigned>(fills_left);
  const unsigned field = (left & 0xFU) | (left >> 4U) << 14U;
  wait(kernel, lgkmcnt_bits | (vmcnt_bits & ~field));
}
void barrier(Kernel& kernel) {
  if (kernel.threads() <= kernel.target().wave_size) return;
  kernel.ir().CreateIntrinsic(llvm::Intrinsic::amdgcn_s_barrier, {});
}
namespace {

// The barrier that every workgroup has.
constexpr int barrier_of_workgroup = -1;

bool has_parts_of_barrier(Kernel& kernel) {
  if (!kernel.target().split_barriers)
    kernel.refuse("a barrier in two needs s_barrier_signal, which " + std::string(kernel.target().id) +
                  " does not have");
  return kernel.target().split_barriers && kernel.threads() > kernel.target().wave_size;
}

}  // namespace

void arrive(Kernel& kernel) {
  if (!has_parts_of_barrier(kernel)) return;
  kernel.ir().CreateIntrinsic(llvm::Intrinsic::amdgcn_s_barrier_signal, {}, {kernel.constant(barrier_of_workgroup)});
}
void await_others(Kernel& kernel) {
  if (!has_parts_of_barrier(kernel)) return;
  kernel.ir().CreateIntrinsic(llvm::Intrinsic::amdgcn_s_barrier_wait, {},
                              {kernel.ir().getInt16(static_cast<std::uint16_t>(barrier_of_workgroup))});
}
void set_priority(Kernel& kernel, int priority) {
  kernel.ir().CreateIntrinsic(llvm::Intrinsic::amdgcn_s_setprio, {},
                              {kernel.ir().getInt16(static_cast<std::uint16_t>(priority))});
}

namespace {

// An empty instruction with operands in registers. No clobbers and no memory: nothing else is held up by it.
void pin_in(Kernel& kernel, const Values& values, const std::string& constraint) {
  std::vector<llvm::Type*> types;
  std::string constraints;
  for (Value* value : values) {
    types.push_back(value->getType());
    constraints += (constraints.empty() ? "" : ",") + constraint;
  }
  llvm::FunctionType* type = llvm::FunctionType::get(llvm::Type::getVoidTy(kernel.context()), types, false);
  llvm::CallInst* call = kernel.ir().CreateCall(llvm::InlineAsm::get(type, "", constraints, true), values);
  call->setMemoryEffects(llvm::MemoryEffects::none());
}

}  // namespace

void pin(Kernel& kernel, const Values& values) { pin_in(kernel, values, "v"); }
void pin_scalars(Kernel& kernel, const Values& values) { pin_in(kernel, values, "s"); }

Value* opaque(Kernel& kernel, Value* value) {
  // An empty instruction whose result is its operand, in a scalar register. Memory that nobody else sees keeps calls
  // apart that look the same.
  llvm::FunctionType* type = llvm::FunctionType::get(value->getType(), {value->getType()}, false);
  llvm::CallInst* call = kernel.ir().CreateCall(llvm::InlineAsm::get(type, "", "=s,0", true), {value});
  call->setMemoryEffects(llvm::MemoryEffects::inaccessibleMemOnly());
  return call;
}

Value* opaque_constant(Kernel& kernel, Value* value) {
  llvm::FunctionType* type = llvm::FunctionType::get(value->getType(), {value->getType()}, false);
  llvm::CallInst* call = kernel.ir().CreateCall(llvm::InlineAsm::get(type, "", "=s,0", false), {value});
  call->setMemoryEffects(llvm::MemoryEffects::none());
  return call;
}

Value* opaque_in_lanes(Kernel& kernel, Value* value) {
  llvm::FunctionType* type = llvm::FunctionType::get(value->getType(), {value->getType()}, false);
  llvm::CallInst* call = kernel.ir().CreateCall(llvm::InlineAsm::get(type, "", "=v,0", true), {value});
  call->setMemoryEffects(llvm::MemoryEffects::inaccessibleMemOnly());
  return call;
}

}  // namespace wavejit::language
