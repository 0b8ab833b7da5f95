// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/call/shared_chunks.h"

#include "templates/attention/call/numbers.h"
#include "templates/attention/kernel/canon.h"
#include "templates/attention_forward/call/route.h"
#include "templates/attention_forward/kernel/parameters.h"

namespace wavejit::attention_forward {

namespace {

// What the kernel is asked for whose waves share chunks, whoever merges parts.
AttentionShape of_sharing_kernel(const AttentionShape& shape, bool split) {
  AttentionShape walk = split ? shape.of_split_kernel() : shape;
  walk.merged = false;
  return walk.of_shared_chunks();
}

bool has_few_rows(const AttentionShape& shape) {
  return shape.query_rows == QueryRows::up_to_32 && shape.rows != QueriesOf::many && !shape.mixed;
}

}  // namespace

bool can_share(const AttentionShape& shape, const targets::Target& target, bool split) {
  return has_few_rows(shape) && why_no_kernel(of_sharing_kernel(shape, split), target).empty();
}

bool can_share_somewhere(const AttentionShape& shape) {
  return has_few_rows(shape) && has_kernel_somewhere(of_sharing_kernel(shape, true));
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
  if (const std::string why = why_no_kernel(of_sharing_kernel(problem.shape, splits != 1), target); !why.empty())
    return "walk chunks of their own: " + why;
  const bool shares = shares_chunks(problem, splits, target);
  if (!shares && problem.key_length <= one_tile)
    return "walk chunks of their own: the keys are one tile of " + std::to_string(one_tile);
  return std::string(shares ? "share each chunk: " : "walk chunks of their own: ") +
         std::to_string(workgroups_of_runs(problem, splits)) + " workgroups for " +
         std::to_string(target.compute_units) + " compute units";
}

}  // namespace wavejit::attention_forward
