// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What translated vector instructions compute, by mnemonic.
#pragma once

#include <string_view>

#include "simgpu/machine/compile/host/lanes.h"
#include "simgpu/machine/vector/execute.h"

namespace wavejit::simgpu::compile {

// The operands of one instruction for one group of lanes. Words come as integers; float32 as floats.
class Operands {
 public:
  virtual ~Operands() = default;
  virtual llvm::Value* word(unsigned index, unsigned dword = 0) = 0;
  virtual llvm::Value* number(unsigned index, unsigned dword = 0) = 0;
  virtual llvm::Value* mask(unsigned index) = 0;
  virtual void result(llvm::Value* value, unsigned dword = 0) = 0;
  virtual void result_mask(llvm::Value* bits) = 0;
  virtual const Instruction& instruction() const = 0;
};

using EmitVector = void (*)(Lanes&, Operands&);

// Null when it is not translated.
EmitVector find_operation(std::string_view mnemonic);

}  // namespace wavejit::simgpu::compile
