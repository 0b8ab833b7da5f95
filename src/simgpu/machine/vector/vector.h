// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The vector ALU: registers handlers for VOP1, VOP2, VOP3, VOP3P and VOPC in all their encodings (README.md).
#pragma once

#include <span>
#include <string_view>

#include "simgpu/machine/decode/registry.h"
#include "simgpu/machine/vector/operation.h"
#include "simgpu/process/host_set.h"

namespace wavejit::simgpu {

// Everything with a `v_` mnemonic except matrix instructions, for the registry's target.
void register_vector(Registry& registry);

namespace vector {

// The kernels as compiled for `set`; the order is the same in every set.
std::span<const OperationList> operation_lists(HostSet set);

}  // namespace vector
}  // namespace wavejit::simgpu
