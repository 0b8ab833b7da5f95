// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "codegen/language/control.h"

#include <llvm/IR/IntrinsicsAMDGPU.h>
#include <llvm/IR/MDBuilder.h>

#include <cstddef>

namespace wavejit::language {
namespace {

llvm::BasicBlock* new_block(Kernel& kernel, const char* name) {
  return llvm::BasicBlock::Create(kernel.context(), name, &kernel.function());
}

llvm::MDNode* weights(Kernel& kernel, Likelihood likelihood) {
  if (likelihood == Likelihood::even) return nullptr;
  return llvm::MDBuilder(kernel.context()).createBranchWeights(1, 1000);
}

}  // namespace

Value* any_lane(Kernel& kernel, Value* lane_condition) {
  llvm::IRBuilder<>& ir = kernel.ir();
  llvm::Type* mask = ir.getIntNTy(static_cast<unsigned>(kernel.target().wave_size));
  Value* ballot = ir.CreateIntrinsic(llvm::Intrinsic::amdgcn_ballot, {mask}, {lane_condition});
  return ir.CreateICmpNE(ballot, llvm::ConstantInt::get(mask, 0));
}

Values if_uniform(Kernel& kernel, Value* condition, Likelihood likelihood, const Values& values,
                  const std::function<Values(const Values&)>& body) {
  llvm::IRBuilder<>& ir = kernel.ir();
  llvm::BasicBlock* before = ir.GetInsertBlock();
  llvm::BasicBlock* taken = new_block(kernel, "taken");
  llvm::BasicBlock* join = new_block(kernel, "join");
  ir.CreateCondBr(condition, taken, join, weights(kernel, likelihood));

  ir.SetInsertPoint(taken);
  const Values changed = body(values);
  llvm::BasicBlock* taken_end = ir.GetInsertBlock();
  ir.CreateBr(join);

  ir.SetInsertPoint(join);
  Values merged;
  merged.reserve(values.size());
  for (std::size_t index = 0; index < values.size(); ++index) {
    if (changed[index] == values[index]) {
      merged.push_back(values[index]);
      continue;
    }
    llvm::PHINode* phi = ir.CreatePHI(values[index]->getType(), 2);
    phi->addIncoming(values[index], before);
    phi->addIncoming(changed[index], taken_end);
    merged.push_back(phi);
  }
  return merged;
}

void if_uniform(Kernel& kernel, Value* condition, Likelihood likelihood, const std::function<void()>& body) {
  if_uniform(kernel, condition, likelihood, {}, [&](const Values&) {
    body();
    return Values{};
  });
}

void leave_if(Kernel& kernel, Value* condition) {
  llvm::IRBuilder<>& ir = kernel.ir();
  llvm::BasicBlock* leaves = new_block(kernel, "leaves");
  llvm::BasicBlock* stays = new_block(kernel, "stays");
  ir.CreateCondBr(condition, leaves, stays, weights(kernel, Likelihood::rarely));
  ir.SetInsertPoint(leaves);
  ir.CreateRetVoid();
  ir.SetInsertPoint(stays);
}

Values loop_in_phases(Kernel& kernel, int phases, const Values& initial,
                      const std::function<Values(int phase, const Values&)>& body,
                      const std::function<Value*(const Values&)>& more) {
  llvm::IRBuilder<>& ir = kernel.ir();
  llvm::BasicBlock* entry = ir.GetInsertBlock();
  llvm::BasicBlock* head = new_block(kernel, "loop");
  ir.CreateBr(head);

  ir.SetInsertPoint(head);
  std::vector<llvm::PHINode*> carried;
  Values state;
  for (Value* value : initial) {
    carried.push_back(ir.CreatePHI(value->getType(), 2));
    carried.back()->addIncoming(value, entry);
    state.push_back(carried.back());
  }
  const std::function<Values(int, const Values&)> from_phase = [&](int phase, const Values& before) {
    Values after = body(phase, before);
    if (phase + 1 == phases) return after;
    return if_uniform(kernel, more(after), Likelihood::even, after,
                      [&](const Values& values) { return from_phase(phase + 1, values); });
  };
  state = from_phase(0, state);

  llvm::BasicBlock* latch = ir.GetInsertBlock();
  llvm::BasicBlock* done = new_block(kernel, "loop_done");
  ir.CreateCondBr(more(state), head, done);
  for (std::size_t index = 0; index < carried.size(); ++index) carried[index]->addIncoming(state[index], latch);
  ir.SetInsertPoint(done);
  return state;
}

}  // namespace wavejit::language
