// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A kernel out of a finished code object, decoded by the simulated GPU's decoder: what executes there is what is
// counted here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <span>
#include <string>

#include "simgpu/machine/decode/function.h"
#include "simgpu/machine/decode/registry.h"
#include "simgpu/machine/loader/loaded_code.h"
#include "targets/targets.h"

namespace wavejit::analysis {

class KernelCode {
 public:
  // The code object's only kernel. The error says what cannot be read or decoded.
  static std::expected<KernelCode, std::string> read(std::span<const std::byte> code_object);

  const targets::Target& target() const { return *target_; }
  const simgpu::KernelInfo& info() const { return loaded_->object().kernels.front().info; }
  // In address order; the decoder's guard behind the last instruction is left out.
  std::span<const simgpu::Instruction> instructions() const { return instructions_; }
  // The offset of the first instruction that runs: what stands before it is for firmware that does not preload
  // arguments.
  std::uint32_t first_offset() const {
    return loaded_->object().kernels.front().descriptor.preload_dwords() != 0 ? 256 : 0;
  }
  std::string text(const simgpu::Instruction& instruction) const { return function_->text(instruction); }

 private:
  const targets::Target* target_ = nullptr;
  std::unique_ptr<simgpu::Registry> registry_;  // instructions point into it
  std::unique_ptr<simgpu::LoadedCode> loaded_;
  const simgpu::Function* function_ = nullptr;
  std::span<const simgpu::Instruction> instructions_;
};

}  // namespace wavejit::analysis
