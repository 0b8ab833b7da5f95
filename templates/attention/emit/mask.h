// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Keys that a row does not see: their scores become −inf, exactly, whatever stood there.
#pragma once

#include <cstddef>
#include <span>

#include "codegen/language/fragment.h"
#include "templates/attention/emit/query_tile.h"
#include "templates/attention/emit/visible_keys.h"

namespace wavejit::attention {

// Only tiles that reach past the keys which all rows of the wave see pay for this, each end for itself: uniform
// branches skip the rest. `marked`: the tile, with its marks where the walk has them. `first_part`: the 32 keys of the
// tile with which `scores` begin.
void apply_mask(language::Kernel& kernel, const QueryTile& queries, language::Value* marked,
                std::span<language::Accumulator> scores, std::size_t first_part = 0);

// Hides the keys of a marked tile whose bit is not set, where rows of the wave see the tile in part. `bits`: the bits
// of the lane's row, <2 x i32>.
void hide_by_bits(language::Kernel& kernel, const QueryTile& queries, language::Value* marked, language::Value* bits,
                  std::span<language::Accumulator> scores, std::size_t first_part = 0);

// What a marked tile says to the wave; null, of a walk without marks: nothing.
struct Marks {
  language::Value* sees = nullptr;   // its rows see the tile, or what the mask shows of it
  language::Value* whole = nullptr;  // they see all of it
};
Marks marks_of(language::Kernel& kernel, const QueryTile& queries, language::Value* marked);

// The tile's number, of one that may have marks.
language::Value* tile_of(language::Kernel& kernel, const QueryTile& queries, language::Value* tile);

// The other way round: lanes own the keys from `first_key` on (lane_key), registers are the rows from `first_row` on.
void hide_rows(language::Kernel& kernel, const KeyLimits& limits, language::Value* first_key,
               language::Value* first_row, language::Accumulator& scores);

}  // namespace wavejit::attention
