// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Keys that a row does not see: their scores become −inf, exactly, whatever stood there.
#pragma once

#include <cstddef>
#include <span>

#include "codegen/language/fragment.h"
#include "templates/attention/emit/query_tile.h"

namespace wavejit::attention {

// Only tiles that reach past the keys which all rows of the wave see pay for this, each end for itself: uniform
// branches skip the rest. `first_part`: the 32 keys of the tile with which `scores` begin.
void apply_mask(language::Kernel& kernel, const QueryTile& queries, language::Value* tile,
                std::span<language::Accumulator> scores, std::size_t first_part = 0);

}  // namespace wavejit::attention
