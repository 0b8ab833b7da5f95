// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/machine/compile/helpers.h"

#include <cstring>
#include <span>

namespace wavejit::simgpu::compile {
namespace {

void interpret(Wave* wave, const Run* run) {
  for (const Instruction& instruction : std::span(run->first, run->count)) instruction.execute(*wave, instruction);
}

void interpret_lanes(Wave* wave, const Run* run, std::uint64_t lanes, std::uint64_t* masks) {
  std::uint32_t saved[sgpr_count];
  std::memcpy(saved, wave->sgpr, sizeof(saved));
  wave->set_exec(lanes);
  for (const Instruction& instruction : std::span(run->first, run->count)) {
    if (instruction.instruction_class == InstructionClass::vector) instruction.execute(*wave, instruction);
  }
  // With EXEC as it stands, compares leave nothing but these lanes in their results.
  for (unsigned i = 0; i < run->mask_count; ++i) {
    masks[i] = run->narrow_masks ? wave->sgpr[run->masks[i]] : wave->sgpr64(run->masks[i]);
  }
  std::memcpy(wave->sgpr, saved, sizeof(saved));
}

}  // namespace

const Helpers& helpers() {
  static constexpr Helpers all = {.interpret = &interpret, .interpret_lanes = &interpret_lanes};
  return all;
}

}  // namespace wavejit::simgpu::compile
