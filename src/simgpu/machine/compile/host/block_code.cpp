// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/machine/compile/host/block_code.h"

#include "simgpu/machine/compile/host/scalar.h"
#include "simgpu/machine/compile/host/vector_run.h"

namespace wavejit::simgpu::compile {
namespace {

using llvm::Value;

class BlockEmitter {
 public:
  BlockEmitter(llvm::Module& module, const std::string& name, const Host& host) : e_(module.getContext()), ir_(e_.ir) {
    auto* const type = llvm::FunctionType::get(ir_.getVoidTy(), {ir_.getPtrTy()}, false);
    e_.function = llvm::Function::Create(type, llvm::Function::ExternalLinkage, name, module);
    e_.function->addFnAttr(llvm::Attribute::NoUnwind);
    // The widest registers, also where LLVM's tuning for this host would rather not.
    e_.function->addFnAttr("prefer-vector-width", std::to_string(32 * host.lanes));
    e_.function->addFnAttr("min-legal-vector-width", std::to_string(32 * host.lanes));
    e_.host = host;
    e_.wave = e_.function->getArg(0);
    ir_.SetInsertPoint(e_.block("entry"));
    e_.masks = ir_.CreateAlloca(ir_.getInt64Ty(), ir_.getInt32(Run::most_masks));
    end_ = e_.block("end");
  }

  void emit(const Block& block, const Helpers& helpers, std::deque<Run>& runs) {
    for (std::uint32_t i = 0; i < block.count;) {
      const Instruction& instruction = block.first[i];
      const bool last = i + 1 == block.count;
      const std::uint32_t length =
          is_vector_translated(instruction) ? run_length(&instruction, block.count - i, e_.host) : 0;
      if (length != 0) {
        Run& run = runs.emplace_back(Run{.first = &instruction, .count = length});
        emit_run(e_, run, helpers);
        uncounted_ += length;
        i += length;
        stored_next_ = false;
        continue;
      }
      if (is_scalar_translated(instruction)) {
        emit_scalar(e_, instruction);
        ++uncounted_;
        stored_next_ = false;
      } else {
        call(instruction, last);
      }
      ++i;
    }
    if (!stored_next_) set_next(block.first[block.count - 1]);
    count();
    ir_.CreateBr(end_);
    ir_.SetInsertPoint(end_);
    ir_.CreateRetVoid();
  }

 private:
  // As the dispatch loop: the budget without this instruction, the next one named, the handler called. A handler that
  // ends the wave's turn empties its budget, which is never empty before the last instruction otherwise.
  void call(const Instruction& instruction, bool last) {
    ++uncounted_;
    count();
    set_next(instruction);
    e_.call_handler(instruction);
    stored_next_ = true;
    const bool goes_on = instruction.instruction_class == InstructionClass::matrix ||
                         (instruction.instruction_class == InstructionClass::vector && instruction.inner == nullptr);
    if (last || goes_on) return;
    llvm::BasicBlock* const rest = e_.block("rest");
    Value* const budget = e_.load64(offsetof(Wave, budget));
    ir_.CreateCondBr(ir_.CreateICmpEQ(budget, ir_.getInt64(0)), end_, rest);
    ir_.SetInsertPoint(rest);
  }
  void count() {
    if (uncounted_ == 0) return;
    e_.store(ir_.CreateSub(e_.load64(offsetof(Wave, budget)), ir_.getInt64(uncounted_)), offsetof(Wave, budget));
    uncounted_ = 0;
  }
  void set_next(const Instruction& instruction) { e_.store(e_.pointer(&instruction + 1), offsetof(Wave, next)); }

  Emitter e_;
  llvm::IRBuilder<>& ir_;
  llvm::BasicBlock* end_ = nullptr;
  std::uint32_t uncounted_ = 0;
  bool stored_next_ = false;
};

}  // namespace

void emit_block(llvm::Module& module, const std::string& name, const Block& block, const Host& host,
                const Helpers& helpers, std::deque<Run>& runs) {
  BlockEmitter(module, name, host).emit(block, helpers, runs);
}

}  // namespace wavejit::simgpu::compile
