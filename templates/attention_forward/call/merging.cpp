// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/call/merging.h"

#include <algorithm>
#include <optional>
#include <span>

#include "templates/attention/call/merge_costs.h"
#include "templates/attention/call/numbers.h"
#include "templates/attention_forward/call/route.h"
#include "templates/attention_forward/call/splits.h"
#include "templates/attention_forward/kernel/combine/parameters.h"
#include "templates/attention_forward/kernel/parameters.h"

namespace wavejit::attention_forward {
namespace {

using attention::ceil_div;

using attention::CostsOf;
using attention::OneLaunchCosts;
using attention::TwoLaunchesCosts;

// Fitted by `./dev bench merge-costs` to what `wavejit profile` predicts of 2 to 64 chunks of 8 to 32 rows, 1 to 32
// sequences, 64 and 128 dims. The first are those of one wave that walks chunks alone, and merges alone.
constexpr CostsOf<OneLaunchCosts> costs_of_one_wave[] = {
    {.target = "gfx942", .costs = {.arrival = 3412, .turn = 1312, .bytes_a_cycle = 13, .all_bytes_a_cycle = 0}},
    {.target = "gfx950", .costs = {.arrival = 3078, .turn = 1397, .bytes_a_cycle = 15, .all_bytes_a_cycle = 1161}},
};
// Costs for waves that share each chunk, and the rows that they merge.
constexpr CostsOf<OneLaunchCosts> costs_of_shared_rows[] = {
    {.target = "gfx942", .costs = {.arrival = 3402, .turn = 817, .bytes_a_cycle = 35, .all_bytes_a_cycle = 1222}},
    {.target = "gfx950", .costs = {.arrival = 3238, .turn = 1760, .bytes_a_cycle = 40, .all_bytes_a_cycle = 565}},
};
// One kernel merges the parts of both.
constexpr CostsOf<TwoLaunchesCosts> costs_of_second_launch[] = {
    {.target = "gfx942", .costs = {.second_launch = 4124, .chunk = 65, .second_bytes_a_cycle = 5211}},
    {.target = "gfx950", .costs = {.second_launch = 4427, .chunk = 67, .second_bytes_a_cycle = 11294}},
};

std::optional<attention::MergeCosts> merge_costs_of(const AttentionProblem& problem, bool shares,
                                                    const boards::Board& target) {
  if (!may_merge_by_itself(problem.shape)) return std::nullopt;
  const std::span<const CostsOf<OneLaunchCosts>> table = shares ? costs_of_shared_rows : costs_of_one_wave;
  const OneLaunchCosts* const one = attention::costs_of(table, target.id);
  const TwoLaunchesCosts* const two = attention::costs_of<TwoLaunchesCosts>(costs_of_second_launch, target.id);
  if (one == nullptr || two == nullptr) return std::nullopt;
  return attention::MergeCosts{.one = *one, .two = *two};
}

// The parts of tiles of one wave's rows. All sequences count, whatever goes in rounds, and each as the longest: a line
// of text knows no more, and leads to the same kernel.
attention::PartsToMerge parts_to_merge(const AttentionProblem& problem, bool shares, const boards::Board& target) {
  const std::uint64_t chunks = ceil_div(std::uint64_t{problem.key_length}, std::uint64_t{problem.keys_of_chunk()});
  const auto dims = static_cast<std::uint64_t>(problem.shape.head_dim_v);
  const std::uint64_t all_rows = std::uint64_t{problem.query_length} * problem.group();
  const std::uint64_t rows = std::min<std::uint64_t>(all_rows, shared_tile_queries);
  const std::uint64_t dims_of_wave = static_cast<std::uint64_t>(target.wave_size) * merged_dims_of_lane;
  // What a wave's lanes load, those without rows included: few rows take a wave as long as many do.
  const std::uint64_t turns_of_wave = ceil_div(rows * dims, dims_of_wave);
  const std::uint64_t turns = shares ? ceil_div(rows, static_cast<std::uint64_t>(shared_merge_rows)) : turns_of_wave;
  const auto record = static_cast<std::uint64_t>(attention_combine::record_bytes(problem.shape.head_dim_v));
  return {.chunks = chunks,
          .bytes = chunks * turns_of_wave * dims_of_wave * sizeof(float),
          .all_bytes = problem.batch * all_rows * problem.kv_heads * chunks * record,
          .turns = turns};
}

// What the kernel is asked for that merges the parts of the shape's split keys.
AttentionShape of_merging_kernel(const AttentionShape& shape, bool shares) {
  AttentionShape walk = shape.of_split_kernel();
  walk.merged = true;
  walk.shared_chunks = shares;
  return walk;
}

// The costs above were fitted to dense keys. Pages take them, too, but for what had no such kernel when they were fitted:
// a bias, slopes, or a window of left padding.
bool has_fitted_costs(const AttentionShape& shape) {
  return !shape.paged ||
         !(shape.has(Modifier::bias) || shape.has(Modifier::alibi) || (shape.first_keys && shape.mask == Mask::window));
}

}  // namespace

bool may_merge_by_itself(const AttentionShape& shape) {
  return shape.query_rows == QueryRows::up_to_32 && shape.packed_heads && shape.rows == QueriesOf::all &&
         small_tiles_fit({shape.head_dim_qk, shape.head_dim_v}) && has_fitted_costs(shape);
}

bool can_merge(const AttentionShape& shape, const targets::Target& target, bool shares, const Pins& pins) {
  return why_no_kernel(of_merging_kernel(shape, shares), target, pins).empty();
}

bool can_merge_somewhere(const AttentionShape& shape) { return has_kernel_somewhere(of_merging_kernel(shape, false)); }

namespace {

// Why parts of such a problem are merged in a second launch, whoever asks for one; empty: a kernel merges them itself.
std::string why_two_launches(const AttentionProblem& problem, bool shares, const targets::Target& target) {
  if (has_parts_by_sequence(problem)) return "packed queries that go in rounds always are";
  std::string why = why_no_kernel(of_merging_kernel(problem.shape, shares), target);
  if (why.empty() || !shares) return why;
  // Sharing is not in the way of what a wave that walks alone does not merge either.
  std::string alone = why_no_kernel(of_merging_kernel(problem.shape, false), target);
  return alone.empty() ? why : alone;
}

}  // namespace

bool merges_in_walk(const AttentionProblem& problem, bool shares, const boards::Board& target) {
  return attention::in_one_launch(problem.launches, merge_costs_of(problem, shares, target),
                                  parts_to_merge(problem, shares, target)) &&
         !has_parts_by_sequence(problem) && can_merge(problem.shape, target, shares);
}

std::string describe_merging(const AttentionProblem& problem, bool merged, bool shares, const boards::Board& target) {
  if (const std::string why = why_two_launches(problem, shares, target); !why.empty())
    return "merged in a second launch: " + why;
  if (problem.launches == attention::Launches::planned && !has_fitted_costs(problem.shape))
    return "merged in a second launch: no costs of one launch were fitted to a bias, slopes or a window of first_keys "
           "in pages; launches=1 merges them in one";
  return attention::describe_merge(problem.launches, merged, merge_costs_of(problem, shares, target),
                                   parts_to_merge(problem, shares, target));
}

}  // namespace wavejit::attention_forward
