// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Qᵀ as operand B, in registers for good: column = query row, 16 bytes of it a lane.
#pragma once

#include <cstdint>
#include <vector>

#include "codegen/language/matrix.h"
#include "templates/attention/emit/query_tile.h"

namespace wavejit::attention {

// What memory holds: operands as they are multiplied, or f32, which are rounded to them.
enum class QueryNumbers : std::uint8_t { operands, floats };

// Begins its loads, 16 dims each (of f32: 8) …
language::Values load_query(language::Kernel& kernel, int head_dim, const Slice& query, const QueryTile& tile,
                            QueryNumbers numbers = QueryNumbers::operands);
// … and makes operands of it, a fragment for 16 dims. Signs are flipped where the scale is negative.
std::vector<language::OperandB> query_operands(language::Kernel& kernel, const QueryTile& tile,
                                               const language::MatrixUnit& matrix, const language::Values& loaded,
                                               QueryNumbers numbers = QueryNumbers::operands);

}  // namespace wavejit::attention
