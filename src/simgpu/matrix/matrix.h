// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Matrix instructions (v_mfma_*), README.md.
#pragma once

#include <cstdint>
#include <span>

#include "simgpu/decode/registry.h"
#include "simgpu/matrix/matrix_kernel.h"

namespace wavejit::simgpu {

// All dense matrix instructions; which of them a target has is the decoder's business.
void register_matrix(Registry& registry);

namespace matrix {

// 0: products are added with k ascending. Anything else: one fixed permutation of k per seed, for all instructions of
// the process from now on, to show that a result does not hang on the order. Set it while nothing is running.
void set_summation_seed(std::uint64_t seed);

// The shapes that are registered, float64 and f8f6f4 ones included.
std::span<const Shape> shapes();

}  // namespace matrix
}  // namespace wavejit::simgpu
