// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The matrix instruction that multiplies floats of 8 bits on targets with Target::byte_matrix:
// v_mfma_f32_32x32x64_f8f6f4.
#pragma once

namespace wavejit::targets {

inline constexpr int byte_matrix_rows = 32;  // of A, columns of B
inline constexpr int byte_matrix_k = 64;

}  // namespace wavejit::targets
