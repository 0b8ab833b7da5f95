// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The indexer by the textbook, in float64, and the list of a row by a sort. Nothing here is the kernels'.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace wavejit::sparse_indexer::program {

// Σ over heads of relu(query · key) · weight, times the key's scale, and the same of absolute values: what an error is
// relative to. `queries` [heads][key.size()].
struct ExactScore {
  double score = 0;
  double magnitude = 0;
};
ExactScore exact_score(std::span<const float> queries, std::span<const float> weights, std::span<const float> key,
                       double scale);

// Keys begin … end − 1 of a row, the `most` that come first by (value descending, then lower key), ascending. NaN is
// larger than every number, −0 is 0, −∞ is in no list.
std::vector<std::int32_t> sorted_list(std::span<const float> scores, std::int64_t begin, std::int64_t end,
                                      std::int64_t most);

}  // namespace wavejit::sparse_indexer::program
