// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/machine/decode/registry.h"
#include "simgpu/machine/memory/rooms.h"

namespace wavejit::simgpu {

void register_memory(Registry& registry) {
  register_scalar_memory(registry);
  register_flat(registry);
  register_flat_atomics(registry);
  register_buffer(registry);
  register_buffer_atomics(registry);
  register_lds(registry);
  register_lds_atomics(registry);
  register_lds_lanes(registry);
  if (registry.instruction_set() == isa::InstructionSet::rdna4) register_rdna4_memory(registry);
}

}  // namespace wavejit::simgpu
