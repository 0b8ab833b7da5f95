// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "analysis/kernel_code.h"

#include <format>

#include "simgpu/machine/decode/disassembler.h"
#include "simgpu/machine/device/rooms.h"

namespace wavejit::analysis {

std::expected<KernelCode, std::string> KernelCode::read(std::span<const std::byte> code_object) {
  auto object = simgpu::read_code_object(code_object);
  if (!object) return std::unexpected(object.error());
  if (object->kernels.size() != 1)
    return std::unexpected(std::format("the code object has {} kernels; one is accepted", object->kernels.size()));
  KernelCode code;
  code.target_ = targets::find_target_by_machine(object->machine);
  if (code.target_ == nullptr) return std::unexpected("the code object is for an unknown target: " + object->target_id);
  const unsigned lanes = object->kernels.front().descriptor.lanes();
  simgpu::Disassembler* disassembler = simgpu::Disassembler::for_processor(code.target_->id, lanes);
  if (disassembler == nullptr) return std::unexpected("no disassembler for " + std::string(code.target_->id));
  code.registry_ = std::make_unique<simgpu::Registry>(*code.target_);
  simgpu::register_rooms(*code.registry_);
  constexpr int no_device = 0;  // whose memory it is does not matter: nothing runs from here
  auto loaded = simgpu::LoadedCode::load(code_object, std::move(*object), no_device, *disassembler, *code.registry_);
  if (!loaded) return std::unexpected(loaded.error().text);
  code.loaded_ = std::move(*loaded);

  const simgpu::KernelDescription& kernel = code.loaded_->object().kernels.front();
  const simgpu::Instruction* entry = code.loaded_->instruction_at(
      code.loaded_->base() + kernel.descriptor_address + static_cast<std::uint64_t>(kernel.descriptor.entry_offset));
  if (entry == nullptr) return std::unexpected(kernel.info.name + ": no instruction at its entry");
  code.function_ = entry->function;
  for (const auto& [instruction, problem] : code.function_->problems) {
    // The guard behind the end is a problem by design: nobody may arrive there.
    if (instruction == &code.function_->instructions.back()) continue;
    return std::unexpected(std::format("{}: offset {:#x} does not decode: {}", kernel.info.name,
                                       instruction->offset_in_function, problem));
  }
  code.instructions_ = std::span(code.function_->instructions).first(code.function_->instructions.size() - 1);
  return code;
}

}  // namespace wavejit::analysis
