// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/machine/device/rooms.h"

#include "simgpu/machine/decode/dual.h"
#include "simgpu/machine/decode/registry.h"
#include "simgpu/machine/matrix/matrix.h"
#include "simgpu/machine/vector/vector.h"

namespace wavejit::simgpu {

void register_rooms(Registry& registry) {
  register_scalar(registry);
  register_control(registry);
  register_memory(registry);
  register_vector(registry);
  register_matrix(registry);
  if (registry.instruction_set() != isa::InstructionSet::rdna4) return;
  register_rdna4_scalar(registry);
  register_rdna4_control(registry);
  register_dual(registry);
}

}  // namespace wavejit::simgpu
