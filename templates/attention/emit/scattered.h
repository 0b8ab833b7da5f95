// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Elements of tensors whose dims need not stand side by side (Slice::scattered): one at a time, whatever the distances
// of rows and dims.
#pragma once

#include <span>

#include "templates/attention/emit/query_tile.h"
#include "templates/attention/emit/slice.h"

namespace wavejit::attention {

// Where lanes point that have no row: beyond every slice of less than 2 GiB, whatever uniform offset within one is
// added.
inline constexpr std::uint32_t beyond_scattered = 0x80000000;

// The place of each lane's row, or beyond.
language::Value* scattered_row(language::Kernel& kernel, const Slice& slice, language::Value* exists,
                               language::Value* row_offset);
// The same of query rows, of packed heads as well; the lane's dims begin with `first_dim`.
language::Value* scattered_query_row(language::Kernel& kernel, const QueryTile& tile, const Slice& slice,
                                     language::Value* row, language::Value* first_dim);

// `count` dims from `dim` on of the row at `lane_offset`, of a tile at `uniform_offset`: one value each.
void load_scattered(const Slice& slice, language::Kernel& kernel, language::Value* lane_offset,
                    language::Value* uniform_offset, int dim, int count, language::Values& loaded);
// As they would stand side by side in memory.
language::Value* pack_scattered(language::Kernel& kernel, std::span<language::Value* const> elements,
                                int element_bytes);

// Each element of `dwords` (packed) to where it belongs, from `dim` on.
void store_scattered(language::Kernel& kernel, const Slice& slice, language::Value* dwords, int element_bytes,
                     language::Value* lane_offset, int dim);

}  // namespace wavejit::attention
