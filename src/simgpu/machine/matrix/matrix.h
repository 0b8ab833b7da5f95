// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Matrix instructions (v_mfma_*), README.md.
#pragma once

#include <cstdint>
#include <span>

#include "simgpu/machine/decode/registry.h"
#include "simgpu/machine/matrix/matrix_kernel.h"

namespace wavejit::simgpu {

// All dense matrix instructions; which of them a target has is the decoder's business.
void register_matrix(Registry& registry);

namespace matrix {

// The shapes that are registered: src/isa has the table.
std::span<const Shape> shapes();

}  // namespace matrix
}  // namespace wavejit::simgpu
