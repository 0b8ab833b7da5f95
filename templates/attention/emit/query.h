// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Qᵀ as operand B, in registers for good: column = query row, 16 bytes of it a lane.
#pragma once

#include <vector>

#include "codegen/language/matrix.h"
#include "templates/attention/emit/query_tile.h"

namespace wavejit::attention {

// Begins its loads, 16 dims each …
language::Values load_query(language::Kernel& kernel, int head_dim, const Slice& query, const QueryTile& tile);
// … and makes operands of it, one fragment for each load. Signs are flipped where the scale is negative.
std::vector<language::OperandB> query_operands(language::Kernel& kernel, const QueryTile& tile,
                                               const language::MatrixUnit& matrix, const language::Values& loaded);

}  // namespace wavejit::attention
