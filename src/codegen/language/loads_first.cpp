// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "codegen/language/loads_first.h"

#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/Instructions.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace wavejit::language {
namespace {

using llvm::BasicBlock;
using llvm::Instruction;
using llvm::LoadInst;

bool is_scalar_load(const Instruction& instruction) {
  const auto* load = llvm::dyn_cast<LoadInst>(&instruction);
  return load != nullptr && !load->isVolatile() && load->getPointerAddressSpace() == constant_space;
}

bool has_effects(const Instruction& instruction) {
  return instruction.isTerminator() || instruction.mayHaveSideEffects() ||
         (instruction.mayReadFromMemory() && !is_scalar_load(instruction));
}

// An instruction without code whose results are its operands: all of them stand in scalar registers at once, here.
// What was made of them is made of what leaves it, so that no use of one comes before the load of another.
void stand_together(Kernel& kernel, const std::vector<Instruction*>& values) {
  if (values.empty()) return;
  std::vector<llvm::Type*> types;
  std::string results;
  std::string operands;
  for (std::size_t at = 0; at < values.size(); ++at) {
    types.push_back(values[at]->getType());
    results += at == 0 ? "=s" : ",=s";
    operands += "," + std::to_string(at);
  }
  llvm::Type* together = types.size() == 1 ? types.front() : llvm::StructType::get(kernel.context(), types);
  llvm::FunctionType* type = llvm::FunctionType::get(together, types, false);
  const Values arguments(values.begin(), values.end());
  llvm::CallInst* here =
      llvm::CallInst::Create(type, llvm::InlineAsm::get(type, "", results + operands, true), arguments, "");
  here->insertAfter(values.back());
  here->setMemoryEffects(llvm::MemoryEffects::none());
  Instruction* behind = here;
  for (std::size_t at = 0; at < values.size(); ++at) {
    Instruction* result = here;
    if (types.size() != 1) {
      result = llvm::ExtractValueInst::Create(here, {static_cast<unsigned>(at)}, "");
      result->insertAfter(behind);
      behind = result;
    }
    values[at]->replaceUsesWithIf(result, [&](const llvm::Use& use) { return use.getUser() != here; });
  }
}

// What comes of it is used by what has effects.
class Needed {
 public:
  explicit Needed(Kernel& kernel) {
    for (BasicBlock& block : kernel.function())
      for (Instruction& instruction : block)
        if (has_effects(instruction)) add(instruction);
  }
  bool contains(const Instruction* instruction) const { return all_.contains(instruction); }

 private:
  void add(const Instruction& first) {
    std::vector<const Instruction*> open = {&first};
    while (!open.empty()) {
      const Instruction* one = open.back();
      open.pop_back();
      if (!all_.insert(one).second) continue;
      for (const llvm::Value* operand : one->operands())
        if (const auto* before = llvm::dyn_cast<Instruction>(operand)) open.push_back(before);
    }
  }
  std::unordered_set<const Instruction*> all_;
};

// A field of the arguments, and where it stands.
struct Field {
  std::uint64_t offset;
  LoadInst* load;
};

std::vector<Field> fields_of(Kernel& kernel) {
  std::vector<Field> fields;
  const Needed needed(kernel);
  const llvm::DataLayout& layout = kernel.module().getDataLayout();
  for (BasicBlock& block : kernel.function())
    for (Instruction& instruction : block) {
      if (!is_scalar_load(instruction) || !needed.contains(&instruction)) continue;
      auto* load = llvm::cast<LoadInst>(&instruction);
      llvm::APInt offset(layout.getIndexTypeSizeInBits(load->getPointerOperandType()), 0);
      if (load->getPointerOperand()->stripAndAccumulateConstantOffsets(layout, offset, false) ==
          kernel.function().getArg(0))
        fields.push_back({.offset = offset.getZExtValue(), .load = load});
    }
  // Neighbours are one wide load.
  std::ranges::stable_sort(fields, {}, &Field::offset);
  return fields;
}

void read_arguments_at_entry(Kernel& kernel) {
  BasicBlock& entry = kernel.function().getEntryBlock();
  Instruction* behind = nullptr;
  const auto place = [&](Instruction* one) {
    if (behind != nullptr)
      one->moveAfter(behind);
    else
      one->moveBefore(entry, entry.begin());
    behind = one;
  };
  std::vector<Instruction*> loads;
  for (const Field& field : fields_of(kernel)) {
    if (auto* address = llvm::dyn_cast<Instruction>(field.load->getPointerOperand())) place(address);
    place(field.load);
    loads.push_back(field.load);
  }
  stand_together(kernel, loads);
}

// When an instruction of a block may come: with the loads that wait for no other, with those behind them, …
class Turns {
 public:
  static constexpr int last = std::numeric_limits<int>::max();

  Turns(BasicBlock& block, const Values& then) {
    std::vector<Instruction*> loads;
    for (Instruction& instruction : block) {
      depth_[&instruction] = depth_of(instruction);
      turn_[&instruction] = last;
      if (is_scalar_load(instruction) && depth_[&instruction] != last) loads.push_back(&instruction);
    }
    for (Instruction* load : loads) take(*load, depth_[load]);
    // These loads go after all scalar loads.
    for (Value* one : then) {
      auto* load = llvm::dyn_cast<Instruction>(one);
      if (load == nullptr || load->getParent() != &block) continue;
      const bool is_free = llvm::all_of(load->operands(), [&](const llvm::Use& operand) {
        const auto* before = llvm::dyn_cast<Instruction>(operand.get());
        const auto found = before == nullptr ? depth_.end() : depth_.find(before);
        return found == depth_.end() || found->second != last;
      });
      if (is_free) take(*load, last - 1);
    }
  }
  int of(const Instruction& instruction) const { return turn_.at(&instruction); }

 private:
  static bool stays(const Instruction& instruction) {
    return llvm::isa<llvm::PHINode>(instruction) || has_effects(instruction);
  }
  // Loads of the block that it waits for one after the other; last: it waits for something that stays.
  int depth_of(const Instruction& instruction) const {
    if (llvm::isa<llvm::PHINode>(instruction)) return 0;
    if (stays(instruction)) return last;
    int depth = 0;
    for (const llvm::Value* operand : instruction.operands()) {
      const auto* before = llvm::dyn_cast<Instruction>(operand);
      const auto found = before == nullptr ? depth_.end() : depth_.find(before);
      if (found == depth_.end()) continue;
      if (found->second == last) return last;
      depth = std::max(depth, found->second + (is_scalar_load(*before) ? 1 : 0));
    }
    return depth;
  }
  void take(Instruction& instruction, int turn) {
    const auto found = turn_.find(&instruction);
    if (found == turn_.end() || found->second <= turn || llvm::isa<llvm::PHINode>(instruction)) return;
    found->second = turn;
    for (llvm::Value* operand : instruction.operands())
      if (auto* before = llvm::dyn_cast<Instruction>(operand)) take(*before, turn);
  }

  std::unordered_map<const Instruction*, int> depth_;
  std::unordered_map<const Instruction*, int> turn_;
};

void order(Kernel& kernel, BasicBlock& block, const Values& then) {
  const Turns turns(block, then);
  std::vector<Instruction*> moved;
  Instruction* first_that_stays = nullptr;
  for (Instruction& instruction : block) {
    if (turns.of(instruction) != Turns::last)
      moved.push_back(&instruction);
    else if (first_that_stays == nullptr && !llvm::isa<llvm::PHINode>(instruction))
      first_that_stays = &instruction;
  }
  if (first_that_stays == nullptr) return;
  std::ranges::stable_sort(moved, {}, [&](const Instruction* one) { return turns.of(*one); });
  std::vector<Instruction*> loads;
  for (std::size_t at = 0; at < moved.size(); ++at) {
    moved[at]->moveBefore(first_that_stays->getIterator());
    if (is_scalar_load(*moved[at])) loads.push_back(moved[at]);
    if (at + 1 < moved.size() && turns.of(*moved[at + 1]) == turns.of(*moved[at])) continue;
    stand_together(kernel, loads);
    loads.clear();
  }
}

}  // namespace

void loads_first(Kernel& kernel, const Values& then) {
  read_arguments_at_entry(kernel);
  for (BasicBlock& block : kernel.function())
    if (&block != &kernel.function().getEntryBlock()) order(kernel, block, then);
}

}  // namespace wavejit::language
