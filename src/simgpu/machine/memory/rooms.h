// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The parts of register_memory, one file each.
#pragma once

namespace wavejit::simgpu {

class Registry;

void register_scalar_memory(Registry& registry);
void register_flat(Registry& registry);
void register_flat_atomics(Registry& registry);
void register_buffer(Registry& registry);
void register_buffer_atomics(Registry& registry);
void register_lds(Registry& registry);
void register_lds_atomics(Registry& registry);
void register_lds_lanes(Registry& registry);
void register_rdna4_memory(Registry& registry);

}  // namespace wavejit::simgpu
