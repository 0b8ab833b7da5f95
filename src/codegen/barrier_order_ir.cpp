// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "codegen/barrier_order_ir.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/IR/DataLayout.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/IntrinsicsAMDGPU.h>
#include <llvm/IR/Module.h>

#include <algorithm>
#include <format>
#include <optional>

namespace wavejit::codegen {
namespace {

constexpr unsigned lds_address_space = 3;
using Kind = LdsEvent::Kind;

class Reader {
 public:
  explicit Reader(const llvm::Module& module) : layout_(module.getDataLayout()) {}

  // The instruction's events; the error says why it cannot be followed.
  std::expected<void, std::string> read(const llvm::Instruction& instruction, std::vector<LdsEvent>& events) const {
    const auto add = [&](Kind kind, std::uint64_t amount) {
      events.push_back({.kind = kind, .amount = static_cast<std::uint32_t>(amount), .position = 0});
    };
    // Operands through the base class: pointer and value stand at these places in each of the four.
    if (llvm::isa<llvm::LoadInst>(instruction)) {
      if (is_lds_pointer(*instruction.getOperand(0))) add(Kind::read, bytes_of(instruction.getType()));
    } else if (llvm::isa<llvm::StoreInst>(instruction)) {
      if (is_lds_pointer(*instruction.getOperand(1))) add(Kind::write, bytes_of(instruction.getOperand(0)->getType()));
    } else if (llvm::isa<llvm::AtomicRMWInst>(instruction)) {
      if (is_lds_pointer(*instruction.getOperand(0))) add(Kind::write, bytes_of(instruction.getType()));
    } else if (llvm::isa<llvm::AtomicCmpXchgInst>(instruction)) {
      if (is_lds_pointer(*instruction.getOperand(0))) add(Kind::write, bytes_of(instruction.getOperand(2)->getType()));
    } else if (const auto* call = llvm::dyn_cast<llvm::CallBase>(&instruction)) {
      return read_call(*call, add);
    }
    return {};
  }

 private:
  template <typename Add>
  std::expected<void, std::string> read_call(const llvm::CallBase& call, const Add& add) const {
    if (const auto* assembly = llvm::dyn_cast<llvm::InlineAsm>(call.getCalledOperand())) {
      const llvm::StringRef text = assembly->getAsmString();
      if (text.contains("ds_") || text.contains("barrier") || text.contains("lds")) {
        return std::unexpected(std::format("inline assembly touches LDS or barriers: '{}'", text.str()));
      }
      return {};
    }
    const llvm::Function* callee = call.getCalledFunction();
    if (!callee || !callee->isIntrinsic()) return std::unexpected("a call: kernels are one function");
    switch (callee->getIntrinsicID()) {
      case llvm::Intrinsic::amdgcn_s_barrier:  // arrival, and the wait for the others
        add(Kind::barrier, 0);
        add(Kind::barrier, 0);
        return {};
      case llvm::Intrinsic::amdgcn_s_barrier_signal:
      case llvm::Intrinsic::amdgcn_s_barrier_wait:
        add(Kind::barrier, 0);
        return {};
      case llvm::Intrinsic::amdgcn_raw_buffer_load_lds:
      case llvm::Intrinsic::amdgcn_raw_ptr_buffer_load_lds:
      case llvm::Intrinsic::amdgcn_struct_buffer_load_lds:
      case llvm::Intrinsic::amdgcn_struct_ptr_buffer_load_lds:
      case llvm::Intrinsic::amdgcn_global_load_lds:
      case llvm::Intrinsic::amdgcn_load_to_lds:
        add(Kind::dma, 1);
        return {};
      default:
        break;
    }
    if (call.getType()->isVoidTy() || !reads_lds_pointer(call)) {
      if (call.mayWriteToMemory() && reads_lds_pointer(call)) {
        return std::unexpected(std::format("{} writes LDS in a way that is not followed", callee->getName().str()));
      }
      return {};
    }
    // ds.read.tr… and their like: a pointer into LDS in, data out.
    add(call.mayWriteToMemory() && !callee->getName().starts_with("llvm.amdgcn.ds.read") ? Kind::write : Kind::read,
        bytes_of(call.getType()));
    return {};
  }

  static bool is_lds_pointer(const llvm::Value& value) {
    const llvm::Type* type = value.getType();
    return type->isPointerTy() && type->getPointerAddressSpace() == lds_address_space;
  }

  static bool reads_lds_pointer(const llvm::CallBase& call) {
    return call.mayReadOrWriteMemory() &&
           std::ranges::any_of(call.args(), [](const llvm::Use& operand) { return is_lds_pointer(*operand); });
  }

  std::uint64_t bytes_of(llvm::Type* type) const { return layout_.getTypeStoreSize(type).getFixedValue(); }

  const llvm::DataLayout& layout_;
};

}  // namespace

std::expected<LdsFlowGraph, std::string> lds_flow_of_ir(const llvm::Module& module) {
  const llvm::Function* kernel = nullptr;
  for (const llvm::Function& function : module) {
    if (function.isDeclaration()) continue;
    if (kernel) return std::unexpected("more than one function: kernels are one function");
    kernel = &function;
  }
  if (!kernel) return std::unexpected("no function");

  const Reader reader(module);
  LdsFlowGraph graph;
  llvm::DenseMap<const llvm::BasicBlock*, std::uint32_t> index;
  for (const llvm::BasicBlock& block : *kernel) {
    index[&block] = static_cast<std::uint32_t>(graph.nodes.size());
    LdsFlowGraph::Node& node = graph.nodes.emplace_back();
    for (const llvm::Instruction& instruction : block) {
      if (auto read = reader.read(instruction, node.events); !read) return std::unexpected(read.error());
    }
    node.exits =
        llvm::isa<llvm::ReturnInst>(block.getTerminator()) || llvm::isa<llvm::UnreachableInst>(block.getTerminator());
  }
  for (const llvm::BasicBlock& block : *kernel) {
    for (const llvm::BasicBlock* successor : llvm::successors(&block)) {
      graph.nodes[index[&block]].successors.push_back(index[successor]);
    }
  }
  return graph;
}

}  // namespace wavejit::codegen
