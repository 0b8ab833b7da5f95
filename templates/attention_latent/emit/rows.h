// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a wave leaves of its rows: O and LSE, or the part of a chunk for the combine kernel.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "codegen/language/matrix.h"
#include "codegen/language/softmax.h"
#include "templates/attention_latent/emit/workgroup.h"

namespace wavejit::attention_latent {

// Lanes that point here store nothing.
inline constexpr std::uint32_t nowhere = 0x80000000;

// The end of a row, in every kernel: what O is multiplied with, and LSE. `sink` is called where there are sinks.
struct RowEnd {
  language::Value* factor;
  language::Value* log_sum_exp;
};
RowEnd end_of_row(language::Kernel& kernel, const language::Softmax& softmax, const language::PartStatistics& row,
                  const std::function<language::Value*(language::Value* sinks)>& sink);

// O = fma(accumulated, factor, +0), rounded; LSE where it is wanted. Rows that are not there are dropped.
// `quad(block, r, at)` returns registers r … r + 3 of a block of O's accumulators; they lie at byte `at` of the row.
void store_rows(language::Kernel& kernel, const WalkKernel& spec, const Workgroup& workgroup,
                const language::Softmax& softmax, const language::PartStatistics& row,
                const language::AccumulatorLayout& layout, language::Element element,
                const std::function<language::Value*(int block, int r, int at)>& quad);

// O, m and l of one chunk as they are, in f32.
void store_part(language::Kernel& kernel, const WalkKernel& spec, const Workgroup& workgroup, language::Value* chunk,
                const language::PartStatistics& part, std::span<const language::Accumulator> outputs);

// LSE of rows, where it is wanted, from lanes that write.
void store_log_sum_exp(language::Kernel& kernel, const attention::QueryTile& rows, language::Value* writes,
                       language::Value* log_sum_exp);

// Where the records of a tile begin, i64: that whose first row is `row` of a sequence whose first query is
// `query_start`.
language::Value* records_of(language::Kernel& kernel, int head_dim, bool listed, language::Value* batch,
                            language::Value* query_start, language::Value* row);
// Bytes of a tile's records for each of the tile's rows.
language::Value* record_stride(language::Kernel& kernel, int head_dim, bool listed);

}  // namespace wavejit::attention_latent
