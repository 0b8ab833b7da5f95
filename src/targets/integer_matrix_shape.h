// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The matrix instructions that multiply integers of 8 bits on targets with Target::integer_matrix_k, and how deep an
// operand of theirs is: 16 bytes a lane.
#pragma once

namespace wavejit::targets {

inline constexpr int integer_matrix_rows = 32;  // of A, columns of B
inline constexpr int integer_operand_k = 32;

}  // namespace wavejit::targets
