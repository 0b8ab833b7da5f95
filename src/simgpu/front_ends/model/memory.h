// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The GPU's memory as ROCr's thunk tells of it. What the host may see, which is all that kernels are given, is mapped
// at the GPU's address in this process too: so the simulated GPU's addresses are host addresses, as everywhere.
#pragma once

#include <cstdint>

#include "simgpu/front_ends/model/interface.h"
#include "simgpu/machine/device/device.h"

namespace wavejit::simgpu::model {

// Allocated, and not mapped yet: nothing is touched. Memory that the host does not see (the hardware's own) and
// registers are nothing that kernels reach; one that tries is reported.
void add_memory(Device& device, std::uint64_t address, std::uint64_t bytes, std::uint32_t flags);
void remove_memory(std::uint64_t address);

// The mapping of this process around an address of the host, as Launch::find_host asks for it; 0 bytes: none. ROCr has
// the thunk register the host's memory, and the thunk tells nobody.
Allocation find_host_memory(std::uint64_t address);

}  // namespace wavejit::simgpu::model
