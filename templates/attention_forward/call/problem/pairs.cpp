// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/call/problem/pairs.h"

#include <algorithm>
#include <cstdint>

#include "templates/attention_forward/call/problem/route.h"

namespace wavejit::attention_forward {
namespace {

// In key tiles of 64, as the clock predicts them for gfx950 (docs/tune.md): what a query tile costs beside its walk, and
// what the second one of a pair saves of it.
constexpr std::int64_t tile_cost = 11;
constexpr std::int64_t pair_saving = 3;

constexpr std::int64_t rounded_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// Key tiles that a query tile walks, on average.
std::int64_t mean_walk(const AttentionProblem& problem) {
  const std::int64_t keys = problem.key_length;
  const std::int64_t queries = problem.query_length;
  const std::int64_t last = problem.bottom_right ? keys : std::clamp(problem.causal_prefix + queries, {}, keys);
  return (last + std::max<std::int64_t>(last - queries, 0)) / (2 * keys_of_tile);
}

}  // namespace

bool may_pair(const AttentionShape& shape) {
  return shape.mask == Mask::causal && shape.query_rows == QueryRows::more && !shape.packed_heads && !shape.paged;
}

bool pairs_tiles(const AttentionProblem& problem, const targets::Target& target) {
  if (!may_pair(problem.shape) || default_pipeline(target, problem.shape.query_rows) != Pipeline::dualwave) return false;
  if (problem.paired_tiles) return *problem.paired_tiles;
  // Sequences of their own lengths end early here and there; small workgroups even them out.
  if (problem.uneven_lengths || problem.query_rows != std::uint64_t{problem.batch} * problem.query_length) return false;
  const std::int64_t rows = tile_queries_of(problem.shape, target, Pipeline::dualwave);
  const std::int64_t tiles = rounded_up(problem.query_length, rows);
  if (tiles < 2) return false;
  const std::int64_t heads = std::int64_t{problem.batch} * problem.query_heads;
  const std::int64_t units = target.compute_units;
  // Of a compute unit: whole rounds of pairs, beside single tiles in the best order there is.
  const std::int64_t single = tile_cost + mean_walk(problem);
  const std::int64_t in_pairs = rounded_up(heads * rounded_up(tiles, 2), units) * ((2 * single) - pair_saving);
  return in_pairs * units <= heads * tiles * single;
}

}  // namespace wavejit::attention_forward
