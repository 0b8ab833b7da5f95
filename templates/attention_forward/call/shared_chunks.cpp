// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/call/shared_chunks.h"

#include <string_view>

#include "templates/attention/call/numbers.h"
#include "templates/attention/kernel/canon.h"
#include "templates/attention_forward/call/route.h"
#include "templates/attention_forward/kernel/parameters.h"

namespace wavejit::attention_forward {

namespace {

// Why waves share chunks of such words on no target; empty: they do on some.
std::string_view why_never_shared(const AttentionShape& shape) {
  if (shape.listed || shape.block_lists) return "lists of keys are walked by one wave each";
  if (shape.integers || shape.cache != CacheType::as_queries || shape.narrow_queries)
    return "no kernel of 8 bits shares them";
  if (shape.vectorised) return "no kernel of vectorised pages shares them";
  if (shape.trans_any()) return "rows whose dims are not contiguous are loaded by one wave each";
  if (is_padded({shape.head_dim_qk, shape.head_dim_v})) return "no kernel of head dims that tiles pad shares them";
  return {};
}

}  // namespace

bool may_share(const AttentionShape& shape) {
  return shape.query_rows == QueryRows::up_to_32 && shape.rows != QueriesOf::many && !shape.mixed &&
         why_never_shared(shape).empty();
}

bool can_share(const AttentionShape& shape, const targets::Target& target, bool split) {
  if (!may_share(shape)) return false;
  AttentionShape walk = split ? shape.of_split_kernel() : shape;
  walk.merged = false;
  return has_kernel(walk.of_shared_chunks(), target);
}

namespace {

// With this many keys or fewer only a single wave would have work.
constexpr std::uint32_t one_tile = attention::tile_keys;

std::uint64_t workgroups_of_runs(const AttentionProblem& problem, std::uint32_t splits) {
  const bool packed = problem.shape.packed_heads;
  const std::uint64_t rows = std::uint64_t{problem.query_length} * (packed ? problem.group() : 1);
  const std::uint64_t tiles = attention::ceil_div(rows, std::uint64_t{shared_tile_queries});
  return tiles * problem.batch * (packed ? problem.kv_heads : problem.query_heads) * splits;
}

}  // namespace

bool shares_chunks(const AttentionProblem& problem, std::uint32_t splits, const boards::Board& target) {
  if (!can_share(problem.shape, target, splits != 1)) return false;
  if (problem.shared_chunks) return *problem.shared_chunks;
  if (problem.key_length <= one_tile) return false;
  return workgroups_of_runs(problem, splits) <= static_cast<std::uint64_t>(target.compute_units);
}

std::string describe_sharing(const AttentionProblem& problem, std::uint32_t splits, const boards::Board& target) {
  if (problem.shape.query_rows != QueryRows::up_to_32) return {};
  std::string_view why = why_never_shared(problem.shape);
  if (why.empty() && !can_share(problem.shape, target, splits != 1))
    why = "waves that share them have no registers left for these words";
  if (!why.empty()) return "walk chunks of their own: " + std::string(why);
  const bool shares = shares_chunks(problem, splits, target);
  if (!shares && problem.key_length <= one_tile)
    return "walk chunks of their own: the keys are one tile of " + std::to_string(one_tile);
  return std::string(shares ? "share each chunk: " : "walk chunks of their own: ") +
         std::to_string(workgroups_of_runs(problem, splits)) + " workgroups for " +
         std::to_string(target.compute_units) + " compute units";
}

}  // namespace wavejit::attention_forward
