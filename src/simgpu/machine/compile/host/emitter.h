// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What all parts of the translation share: the function under construction, and a wave's state as loads and stores.
#pragma once

#include <llvm/IR/Constants.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <cstddef>
#include <cstdint>

#include "simgpu/machine/wave/wave.h"

namespace wavejit::simgpu::compile {

// What the host's vectors can do.
struct Host {
  unsigned lanes = 8;       // 32-bit lanes of its widest register: 8 or 16
  bool has_avx512 = false;  // F, VL, BW and DQ
};

struct Emitter {
  llvm::IRBuilder<> ir;
  llvm::Function* function = nullptr;
  llvm::Value* wave = nullptr;
  llvm::Value* masks = nullptr;  // Run::most_masks words on the stack
  Host host;

  explicit Emitter(llvm::LLVMContext& context) : ir(context) {}

  llvm::Value* address(std::size_t offset) { return ir.CreateConstInBoundsGEP1_64(ir.getInt8Ty(), wave, offset); }
  llvm::Value* load32(std::size_t offset) {
    return ir.CreateAlignedLoad(ir.getInt32Ty(), address(offset), llvm::Align(4));
  }
  llvm::Value* load64(std::size_t offset) {
    return ir.CreateAlignedLoad(ir.getInt64Ty(), address(offset), llvm::Align(4));
  }
  void store(llvm::Value* value, std::size_t offset, unsigned align = 4) {
    ir.CreateAlignedStore(value, address(offset), llvm::Align(align));
  }
  static std::size_t sgpr_offset(unsigned index) { return offsetof(Wave, sgpr) + (std::size_t{4} * index); }

  // A host address as a constant.
  llvm::Value* pointer(const void* to) {
    return ir.CreateIntToPtr(ir.getInt64(reinterpret_cast<std::uint64_t>(to)), ir.getPtrTy());
  }
  void call_handler(const Instruction& instruction) {
    auto* const type = llvm::FunctionType::get(ir.getVoidTy(), {ir.getPtrTy(), ir.getPtrTy()}, false);
    ir.CreateCall(type, pointer(reinterpret_cast<const void*>(instruction.execute)), {wave, pointer(&instruction)});
  }
  llvm::BasicBlock* block(const char* name) { return llvm::BasicBlock::Create(ir.getContext(), name, function); }
};

}  // namespace wavejit::simgpu::compile
