// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/call/pairs.h"

#include <algorithm>
#include <cstdint>

#include "templates/attention_forward/kernel/lds_plan.h"
#include "templates/attention_forward/kernel/parameters.h"

namespace wavejit::attention_forward {
namespace {

// In key tiles of 64, as the clock predicts them for gfx950 (docs/tune.md): what a query tile costs beside its walk,
// and what the second one of a pair saves of it where its Q comes while the first one walks.
constexpr std::int64_t tile_cost = 11;
constexpr std::int64_t saving_in_one_chunk = 5;

constexpr std::int64_t rounded_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// The keys that the last row sees, which stands lowest under the diagonal.
std::int64_t last_limit(const AttentionProblem& problem) {
  const std::int64_t keys = problem.key_length;
  if (problem.bottom_right) return keys;
  return std::min(keys, std::int64_t{problem.causal_prefix} + problem.query_length);
}

}  // namespace

bool may_pair(const AttentionShape& shape) {
  return shape.mask == Mask::causal && !shape.causal_flags && shape.query_rows == QueryRows::more &&
         !shape.packed_heads && !shape.paged && !shape.block_lists && shape.cache == CacheType::as_queries &&
         !shape.query_fp32 && !is_padded({shape.head_dim_qk, shape.head_dim_v});
}

bool pairs_tiles(const AttentionProblem& problem, const boards::Board& target) {
  // Hot: what the target lacks for dualwave in words (missing_for) is not asked for. Where the route takes another
  // pipeline after all, that has no pairs, and the kernel is the same.
  if (!may_pair(problem.shape) || lds_layout(target) != LdsLayout::lines) return false;
  if (problem.paired_tiles) return *problem.paired_tiles;
  // Sequences of their own lengths end early here and there; small workgroups even them out.
  if (problem.uneven_lengths || problem.query_rows != std::uint64_t{problem.batch} * problem.query_length) return false;
  const auto tile = static_cast<std::uint32_t>(tile_queries(target, Pipeline::dualwave).back());
  const std::int64_t tiles = (problem.query_length / tile) + (problem.query_length % tile != 0 ? 1 : 0);
  if (tiles < 2) return false;
  const std::int64_t heads = std::int64_t{problem.batch} * problem.query_heads;
  const std::int64_t units = target.compute_units;
  // The time of a compute unit: whole rounds of pairs, and of the middle tiles of odd numbers, beside single tiles in
  // the best order there is.
  const std::int64_t longest = last_limit(problem);
  const std::int64_t mean_keys = (longest + std::max<std::int64_t>(longest - problem.query_length, 0)) / 2;
  const std::int64_t single = tile_cost + (mean_keys / attention::tile_keys);
  const std::int64_t pair =
      (2 * single) - (longest <= chunk_keys || !problem.shape.has_chunks() ? saving_in_one_chunk : 0);
  const std::int64_t rounds = rounded_up(heads * (tiles / 2), units);
  const std::int64_t middle_rounds = tiles % 2 == 0 ? 0 : rounded_up(heads, units);
  // As double: products of limits do not fit.
  const auto real = [](std::int64_t number) { return static_cast<double>(number); };
  const double in_pairs = (real(rounds) * real(pair)) + (real(middle_rounds) * real(single));
  return in_pairs * real(units) <= real(heads * tiles) * real(single);
}

}  // namespace wavejit::attention_forward
