// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A code object in device memory: segments copied, relocations applied, functions decoded when first reached.
#pragma once

#include <cstdint>
#include <expected>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "simgpu/machine/decode/function.h"
#include "simgpu/machine/loader/code.h"
#include "simgpu/machine/loader/code_object.h"
#include "simgpu/process/status.h"

namespace wavejit::simgpu {

class Disassembler;

struct LoadedCode final : Code {
 public:
  static std::expected<std::unique_ptr<LoadedCode>, Status> load(std::span<const std::byte> image, CodeObject object,
                                                                 int device, Disassembler& disassembler,
                                                                 const Registry& registry);
  ~LoadedCode() override;
  LoadedCode(const LoadedCode&) = delete;
  LoadedCode& operator=(const LoadedCode&) = delete;

  const CodeObject& object() const { return object_; }
  std::uint64_t base() const override { return base_; }
  const Instruction* instruction_at(std::uint64_t address) override;

 private:
  LoadedCode(CodeObject object, Disassembler& disassembler, const Registry& registry)
      : object_(std::move(object)), disassembler_(&disassembler), registry_(&registry) {}
  Status relocate();
  Function* function_at(std::uint64_t address);

  CodeObject object_;
  Disassembler* disassembler_;
  const Registry* registry_;
  std::unique_ptr<SourceLines> lines_;  // null without a line table
  std::uint64_t base_ = 0;
  // Executable segments as loaded, in the order of object_.segments: kernels that write to their own code do not
  // change what runs.
  std::vector<std::vector<std::uint8_t>> code_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Function>> functions_;  // sorted by address
};

}  // namespace wavejit::simgpu
