// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/call/splits.h"

#include <algorithm>
#include <optional>

#include "templates/attention/call/key_lists.h"
#include "templates/attention/call/numbers.h"
#include "templates/attention_forward/call/lists.h"
#include "templates/attention_forward/call/merging.h"
#include "templates/attention_forward/call/mix.h"
#include "templates/attention_forward/call/pairs.h"
#include "templates/attention_forward/call/route.h"
#include "templates/attention_forward/call/shared_chunks.h"
#include "templates/attention_forward/kernel/combine/parameters.h"
#include "templates/attention_forward/kernel/parameters.h"

namespace wavejit::attention_forward {
namespace {

using attention::ceil_div;
using Reason = SplitPlan::Reason;

// Guesses. Workgroups of few rows that a compute unit has at a time; what a run costs beside its tiles of keys, and
// what two launches cost beside one, in such tiles; and how often a device is filled that lengths of its own may leave
// half empty.
constexpr std::uint64_t workgroups_per_compute_unit = 2;
using attention::tile_keys;
constexpr std::uint64_t run_cost = 1;
constexpr std::uint64_t combine_cost = 4;
constexpr std::uint64_t most_rounds = 8;
constexpr std::uint64_t rounds_of_uneven_lengths = 16;
// Parts of the time that a tile takes where a compute unit has two workgroups. A workgroup whose waves share its
// chunks, and has the unit to itself, takes half of it where every unit has one; less in proportion where fewer share
// memory, down to what the waves take by themselves. Figures of the clock.
constexpr std::uint64_t parts_of_tile = 20;
constexpr std::uint64_t shared_parts_of_tile = 10;
constexpr std::uint64_t least_parts_of_tile = 3;
// A workgroup of packed heads reaches the records of a group's last head by a 32-bit offset.
constexpr std::uint64_t reach_of_records = std::uint64_t{1} << 31;

std::uint32_t chunks_of(const AttentionProblem& problem) {
  const std::uint32_t chunk = problem.keys_of_chunk();
  return problem.walked_keys() / chunk + (problem.walked_keys() % chunk != 0 ? 1 : 0);
}

std::uint64_t workgroups_of(const AttentionProblem& problem, const boards::Board& target) {
  const AttentionShape& shape = problem.shape;
  const Pipeline pipeline = shape.packed_heads ? Pipeline::generic : default_pipeline(target, shape.query_rows);
  const auto tile = static_cast<std::uint64_t>(tile_queries_of(shape, target, pipeline));
  const std::uint64_t rows = std::uint64_t{problem.query_length} * (shape.packed_heads ? problem.group() : 1);
  const std::uint64_t heads = shape.packed_heads ? problem.kv_heads : problem.query_heads;
  // A workgroup has rows of one query.
  if (shape.listed)
    return std::uint64_t{problem.batch} * problem.query_length * heads * ceil_div(problem.group(), tile);
  return std::max<std::uint64_t>(1, ceil_div(rows, tile) * problem.batch * heads);
}

std::uint64_t tiles_of_run(const AttentionProblem& problem, std::uint64_t chunks, std::uint64_t splits) {
  const std::uint64_t tiles_of_chunk = problem.keys_of_chunk() / static_cast<std::uint32_t>(tile_keys);
  return std::min<std::uint64_t>(ceil_div(chunks, splits) * tiles_of_chunk, ceil_div(problem.walked_keys(), tile_keys));
}

// In place of `splits`: the runs of one workgroup on a compute unit, whose waves share, where that saves a tenth of the
// time. Runs that wait for another's place are left alone: they even out what memory and lengths do.
std::optional<std::uint64_t> shared_runs(const AttentionProblem& problem, const boards::Board& target,
                                         std::uint64_t chunks, std::uint64_t splits) {
  const std::uint64_t workgroups = workgroups_of(problem, target);
  const auto units = static_cast<std::uint64_t>(target.compute_units);
  const auto shares = [&](std::uint64_t runs) {
    return shares_chunks(problem, static_cast<std::uint32_t>(runs), target);
  };
  if (workgroups > units || workgroups * splits > workgroups_per_compute_unit * units || shares(splits)) return {};
  const std::uint64_t runs = ceil_div(chunks, ceil_div(chunks, std::min(units / workgroups, chunks)));
  if (!shares(runs)) return {};
  const std::uint64_t parts = std::max(workgroups * runs * shared_parts_of_tile / units, least_parts_of_tile);
  const bool saves =
      tiles_of_run(problem, chunks, runs) * parts * 10 < tiles_of_run(problem, chunks, splits) * parts_of_tile * 9;
  return saves ? std::optional(runs) : std::nullopt;
}

// Runs that make the device full and leave little of it empty at the end.
SplitPlan fill_device(const AttentionProblem& problem, const boards::Board& target, std::uint32_t chunks,
                      bool may_share_chunks) {
  const std::uint64_t workgroups = workgroups_of(problem, target);
  const std::uint64_t places = workgroups_per_compute_unit * static_cast<std::uint64_t>(target.compute_units);
  const auto chosen = [](std::uint64_t splits) -> SplitPlan {
    if (splits <= 1) return {.reason = Reason::device_is_full};
    return {.splits = static_cast<std::uint32_t>(splits), .reason = Reason::fills_device};
  };
  const auto cost = [&](std::uint64_t splits) {
    return ceil_div(workgroups * splits, places) * (tiles_of_run(problem, chunks, splits) + run_cost) +
           (splits > 1 ? combine_cost : 0);
  };
  const auto or_shared_runs = [&](std::uint64_t splits) {
    return may_share_chunks ? shared_runs(problem, target, chunks, splits).value_or(splits) : splits;
  };
  // Only the device knows how many keys each sequence has: many short runs even them out. Those beyond a sequence's end
  // cost.
  if (problem.uneven_lengths)
    return chosen(or_shared_runs(std::min<std::uint64_t>(rounds_of_uneven_lengths * places / workgroups, chunks)));
  std::uint64_t best = 1;
  std::uint64_t least = cost(1);
  for (std::uint64_t rounds = 1; rounds <= most_rounds; ++rounds) {
    const std::uint64_t most = std::min<std::uint64_t>(rounds * places / workgroups, chunks);
    if (most <= 1) continue;
    const std::uint64_t splits = ceil_div(chunks, ceil_div(chunks, most));
    if (const std::uint64_t of_splits = cost(splits); of_splits < least) {
      best = splits;
      least = of_splits;
    }
    if (most == chunks) break;
  }
  return chosen(or_shared_runs(best));
}

SplitPlan choose(const AttentionProblem& problem, const boards::Board& target, std::optional<std::int32_t> kv_splits,
                 bool pinned) {
  const std::uint32_t chunks = chunks_of(problem);
  if (problem.splits > 0) {
    if (problem.splits > 1 && chunks <= 1) return {.reason = Reason::one_chunk};
    return {.splits = std::min(problem.splits, std::max(chunks, 1U)), .reason = Reason::asked_by_call};
  }
  if (chunks <= 1) return {.reason = Reason::one_chunk};
  if (kv_splits)
    return {.splits = std::min(static_cast<std::uint32_t>(*kv_splits), chunks), .reason = Reason::asked_by_engine};
  // Longer queries fill the device by themselves, or would leave parts of many rows. Of lists a query is as many.
  if (!problem.shape.listed && problem.query_length > longest_packed_query) return {.reason = Reason::whole};
  return fill_device(problem, target, chunks, !pinned && !has_parts_by_sequence(problem));
}

// Kernels divide by multiplication (emit/split.cpp): exact while heads · splits · heads < 2³².
std::uint64_t most_splits(std::uint64_t heads) { return 0xFFFFFFFF / (heads * heads); }
// They are z of the grid where keys are listed.
std::uint64_t most_listed_splits(const AttentionProblem& problem) {
  constexpr std::uint64_t most_of_grid = 0xFFFF;
  return std::min(most_splits(problem.query_heads), most_of_grid / problem.kv_heads);
}

// The plan of one kernel that walks the keys of all sequences. Its records stand `rows_of_head` rows of a head after
// those of the one before.
SplitPlan plan_all(const AttentionProblem& problem, const boards::Board& target, std::optional<std::int32_t> kv_splits,
                   bool pinned, std::uint64_t rows_of_head) {
  SplitPlan plan = choose(problem, target, kv_splits, pinned);
  if (plan.splits == 1) return plan;
  const std::uint64_t heads = problem.query_heads;
  plan.splits = static_cast<std::uint32_t>(std::min<std::uint64_t>(plan.splits, most_splits(heads)));
  if (problem.shape.listed)
    plan.splits = static_cast<std::uint32_t>(std::min<std::uint64_t>(plan.splits, most_listed_splits(problem)));
  if (plan.splits <= 1) return {.reason = Reason::beyond_kernels};
  const std::uint32_t slots = chunks_of(problem);
  if (problem.shape.packed_heads &&
      rows_of_head * problem.group() * slots >=
          reach_of_records / static_cast<std::uint64_t>(attention_combine::record_bytes(problem.shape.head_dim_v)))
      [[unlikely]]
    return {.reason = Reason::beyond_kernels};
  const auto bytes = attention_combine::workspace_bytes(problem.query_rows, heads, slots, problem.shape.head_dim_v);
  if (slots > attention_combine::max_slots || !bytes) [[unlikely]]
    return {.reason = Reason::beyond_kernels};
  plan.workspace_bytes = *bytes;
  return plan;
}

// The same within a workspace: all sequences at once where it has room for them, else in rounds that are as even as
// whole sequences allow.
SplitPlan plan_walk(const AttentionProblem& problem, const boards::Board& target, std::optional<std::int32_t> kv_splits,
                    bool pinned, std::uint64_t reach) {
  SplitPlan plan = plan_all(problem, target, kv_splits, pinned, problem.query_rows);
  if (plan.splits == 1) return plan;
  const bool has_workspace = reach != any_reach;
  const bool by_sequence = has_parts_by_sequence(problem);
  if (plan.workspace_bytes <= (has_workspace ? reach : most_workspace) && !by_sequence) [[likely]]
    return plan;
  const bool asked_by_call = plan.reason == Reason::asked_by_call;
  if (problem.packed_queries && !by_sequence) {
    if (!has_workspace || asked_by_call) return plan;
    return {.reason = Reason::beyond_workspace};
  }
  const std::uint64_t of_sequence = plan.workspace_bytes / problem.query_rows * problem.query_length;
  // A caller that gives a number of splits brings what an engine would take, or all, or is told that it does not fit.
  const bool as_an_engine = !has_workspace || (asked_by_call && reach < of_sequence * problem.batch);
  std::uint64_t fitting = std::min<std::uint64_t>((as_an_engine ? most_workspace : reach) / of_sequence, problem.batch);
  if (fitting == 0 && !as_an_engine) return {.reason = Reason::beyond_workspace};
  fitting = std::max<std::uint64_t>(fitting, 1);
  AttentionProblem round = problem;
  round.batch = static_cast<std::uint32_t>(ceil_div(problem.batch, ceil_div(problem.batch, fitting)));
  round.query_rows = std::uint64_t{round.batch} * problem.query_length;
  // A device that a few sequences leave half empty wants more runs.
  SplitPlan of_round =
      plan_all(round, target, kv_splits, pinned, by_sequence ? problem.query_length : round.query_rows);
  if (of_round.splits == 1) return of_round;
  of_round.sequences_a_round = round.batch;
  return of_round;
}

// The runs of two lists: chunks a run as one list of all of them would have, and as many runs of each as that makes.
SplitPlan runs_of_lists(const AttentionProblem& problem, const boards::Board& target,
                        std::optional<std::int32_t> kv_splits) {
  const std::uint64_t first = attention::parts_of_list(problem.top_k);
  const std::uint64_t second = attention::parts_of_list(problem.second_top_k);
  std::uint64_t of_run = 1;
  if (const std::uint32_t asked =
          problem.splits > 0 ? problem.splits : static_cast<std::uint32_t>(kv_splits.value_or(0));
      asked > 0) {
    of_run = ceil_div(std::max(first, second), std::uint64_t{asked});
  } else {
    AttentionProblem both = problem;
    both.top_k = static_cast<std::uint32_t>((first + second) * problem.keys_of_chunk());
    of_run = ceil_div(first + second, std::uint64_t{choose(both, target, kv_splits, true).splits});
  }
  const auto splits = [&](std::uint64_t chunks) {
    return static_cast<std::uint32_t>(std::min(ceil_div(chunks, of_run), most_listed_splits(problem)));
  };
  return {.splits = splits(first), .second_splits = splits(second), .reason = Reason::two_lists};
}

// As plan_walk, of two lists: their parts are merged, whatever a workspace has room for.
SplitPlan plan_two_lists(const AttentionProblem& problem, const boards::Board& target,
                         std::optional<std::int32_t> kv_splits, std::uint64_t reach) {
  const std::uint64_t of_query = parts_of_lists(problem) * problem.query_heads *
                                 static_cast<std::uint64_t>(attention_combine::record_bytes(problem.shape.head_dim_v));
  const bool has_workspace = reach != any_reach;
  const std::uint64_t limit = has_workspace ? reach : most_workspace;
  SplitPlan all = runs_of_lists(problem, target, kv_splits);
  all.workspace_bytes = of_query * problem.query_rows;
  const std::uint64_t of_sequence = of_query * problem.query_length;
  // A caller that brings too little for one sequence is told what all of them take.
  if (all.workspace_bytes <= limit || problem.packed_queries || (has_workspace && reach < of_sequence)) return all;
  const std::uint64_t fitting = std::clamp<std::uint64_t>(limit / of_sequence, 1, problem.batch);
  AttentionProblem round = problem;
  round.batch = static_cast<std::uint32_t>(ceil_div(problem.batch, ceil_div(problem.batch, fitting)));
  round.query_rows = std::uint64_t{round.batch} * problem.query_length;
  SplitPlan of_round = runs_of_lists(round, target, kv_splits);
  of_round.workspace_bytes = of_query * round.query_rows;
  of_round.sequences_a_round = round.batch;
  return of_round;
}

}  // namespace

std::uint64_t parts_of_lists(const AttentionProblem& problem) {
  return std::uint64_t{attention::parts_of_list(problem.top_k)} + attention::parts_of_list(problem.second_top_k);
}

std::uint64_t most_parts_of_lists(const AttentionProblem& problem) {
  const std::uint64_t rows = problem.packed_queries ? problem.query_rows : problem.query_length;
  const std::uint64_t of_part =
      rows * problem.group() * static_cast<std::uint64_t>(attention_combine::record_bytes(problem.shape.head_dim_v));
  return std::min<std::uint64_t>(attention_combine::max_slots, (reach_of_records - 1) / of_part);
}

bool has_parts_by_sequence(const AttentionProblem& problem) {
  if (problem.shape.block_lists || problem.shape.bool_mask || problem.shape.listed || !problem.packed_queries ||
      problem.query_length > longest_packed_query)
    return false;
  const auto bytes = attention_combine::workspace_bytes(problem.query_rows, problem.query_heads, chunks_of(problem),
                                                        problem.shape.head_dim_v);
  return bytes && *bytes > most_workspace;
}

namespace {

// A pinned kernel mostly has waves that do not share chunks; else the pin says how many do, or that the number of
// workgroups decides.
bool shares_in(const AttentionProblem& problem, std::uint32_t splits, const boards::Board& target,
               const families::Toggles& toggles) {
  if (splits != 1 && has_parts_by_sequence(problem)) [[unlikely]]
    return false;
  if (!toggles.pins_kernels()) [[likely]]
    return shares_chunks(problem, splits, target);
  const Pins pins = pins_of(toggles);
  if (pins.chunk_waves) return *pins.chunk_waves != 1 && can_share(problem.shape, target, splits != 1);
  return pins.shares_chunks && shares_chunks(problem, splits, target);
}

// Whether split keys are merged in one launch by the kernel that is pinned: one that has packed heads.
bool merges_in(const AttentionProblem& problem, std::uint32_t splits, const boards::Board& target,
               const families::Toggles& toggles) {
  if (!merges_in_walk(problem, shares_in(problem, splits, target, toggles), target)) return false;
  if (!toggles.pins_kernels()) return true;
  const Pins pins = pins_of(toggles);
  return pipeline_of(problem.shape.of_split_kernel(), target, pins) == Pipeline::generic &&
         merges_in_tiles_of(problem.shape, pins.tile_queries);
}

}  // namespace

namespace {

// The plan of a bool mask of few rows, whose bits stand in front of the parts.
SplitPlan plan_masked(const AttentionProblem& problem, const boards::Board& target, const families::Toggles& toggles,
                      std::uint64_t reach) {
  const std::uint64_t of_mask = mask_bytes(problem.lists);
  const std::uint64_t left = reach == any_reach ? any_reach : reach - std::min(reach, of_mask);
  SplitPlan plan = plan_walk(problem, target, toggles.kv_splits, toggles.pins_kernels(), left);
  plan.workspace_bytes += of_mask;
  return plan;
}

// The kernel that is pinned walks lists of tiles alone.
bool goes_by_walks(const AttentionProblem& problem, const families::Toggles& toggles) {
  return problem.shape.masks_few_rows() && toggles.pins_kernels() &&
         pins_of(toggles).pipeline.value_or(Pipeline::generic) != Pipeline::generic;
}

}  // namespace

SplitPlan plan_splits(const AttentionProblem& problem, const boards::Board& target, const families::Toggles& toggles,
                      std::uint64_t reach) {
  const std::optional<std::int32_t> kv_splits = toggles.kv_splits;
  if (problem.shape.block_lists || goes_by_walks(problem, toggles)) [[unlikely]]
    return {.workspace_bytes = walk_bytes(problem).value_or(0), .reason = Reason::lists};
  if (problem.shape.bool_mask) [[unlikely]]
    return plan_masked(problem, target, toggles, reach);
  if (problem.second_top_k != 0) [[unlikely]]
    return plan_two_lists(problem, target, kv_splits, reach);
  const bool pinned = toggles.pins_kernels();
  const bool one_walk = pinned || problem.splits > 1 || kv_splits.value_or(1) > 1;
  std::uint32_t few_rows = one_walk ? 0 : few_rows_of(problem);
  if (few_rows == 0) [[likely]] {
    SplitPlan plan = plan_walk(problem, target, kv_splits, pinned, reach);
    if (plan.splits != 1) [[unlikely]]
      plan.merged = merges_in(problem, plan.splits, target, toggles);
    return plan;
  }
  const auto plan_few = [&] {
    SplitPlan plan = plan_all(of_few_rows(problem, few_rows), target, kv_splits, pinned, few_rows);
    plan.few_rows = few_rows;
    return plan;
  };
  SplitPlan plan = plan_few();
  const std::uint64_t most = std::min(reach, most_workspace);
  while (few_rows > 1 && plan.workspace_bytes > most) {
    few_rows /= 2;
    plan = plan_few();
  }
  if (plan.workspace_bytes <= reach) return plan;
  return {.reason = Reason::beyond_workspace, .few_rows = few_rows_of(problem)};
}

std::uint32_t arrivals_of(const AttentionProblem& problem, const SplitPlan& plan) {
  if (!plan.merged) return 0;
  // Tiles have 32 rows at the least, and four waves at the most where they share them: else a wave for 32 rows, in
  // tiles of four such waves at the most.
  constexpr std::uint64_t rows_of_wave = 32;
  constexpr std::uint64_t most_waves = 4;
  const std::uint64_t sequences = plan.sequences_a_round != 0 ? plan.sequences_a_round : problem.batch;
  const std::uint64_t rows = std::uint64_t{problem.query_length} * problem.group();
  return static_cast<std::uint32_t>(sequences * problem.kv_heads * ceil_div(rows, rows_of_wave) * most_waves);
}

AttentionShape kernel_shape(const AttentionProblem& problem, const SplitPlan& plan, const boards::Board& target,
                            const families::Toggles& toggles) {
  if (goes_by_walks(problem, toggles)) [[unlikely]] {
    AttentionShape shape = problem.shape;
    shape.block_lists = true;
    shape.set_rows(rows_of_lists(problem.lists, problem.query_length));
    return shape;
  }
  if (plan.few_rows == 0) [[likely]] {
    if (plan.parts()) {
      AttentionShape shape = problem.shape.of_split_kernel();
      if (has_parts_by_sequence(problem)) [[unlikely]]
        shape.rows = QueriesOf::few;
      shape.merged = plan.merged;
      shape.shared_chunks = shares_in(problem, plan.splits, target, toggles);
      return shape;
    }
    AttentionShape shape = pairs_tiles(problem, target) ? problem.shape.of_paired_kernel() : problem.shape;
    shape.shared_chunks = shares_in(problem, 1, target, toggles);
    return shape;
  }
  const AttentionProblem few = of_few_rows(problem, plan.few_rows);
  AttentionShape shape = problem.shape;
  shape.mixed = true;
  shape.short_query_rows = few.shape.query_rows;
  shape.packed_heads = few.shape.packed_heads;
  shape.split = plan.splits != 1;
  // A pinned kernel has no mixes. Workgroups of all sequences count: those of long ones end at once.
  shape.shared_chunks = shares_chunks(few, plan.splits, target);
  return shape;
}

std::string describe_walks(const SplitPlan& plan) {
  const std::string few =
      plan.few_rows == 1 ? "one query row" : "1 to " + std::to_string(plan.few_rows) + " query rows";
  return "2: sequences of " + few +
         " by the kernel of few rows, whose keys alone may be split; longer ones by the first";
}

namespace {

std::string describe_who_merges(const SplitPlan& plan, const AttentionProblem& problem, const AttentionShape& shape,
                                const boards::Board& target) {
  const std::string second = "merged in a second launch: ";
  if (plan.few_rows != 0)
    return second + "parts of short queries beside long ones always are, whose walk outweighs the wait";
  return describe_merging(problem, shape.merged, shape.shared_chunks, target);
}

std::string rounds_of(const SplitPlan& plan, const AttentionProblem& problem) {
  if (plan.sequences_a_round == 0 || plan.sequences_a_round == problem.batch) return {};
  return " for " + std::to_string(plan.sequences_a_round) + " sequences at a time, in " +
         std::to_string(ceil_div(problem.batch, plan.sequences_a_round)) + " rounds";
}

}  // namespace

std::string describe(const SplitPlan& plan, const AttentionProblem& problem, const AttentionShape& shape,
                     const boards::Board& target) {
  const auto reason = [&]() -> std::string {
    switch (plan.reason) {
      case Reason::asked_by_call:
        return "the call says so";
      case Reason::asked_by_engine:
        return "kv_splits says so";
      case Reason::one_chunk:
        return problem.shape.has_chunks() ? "the keys are one chunk of " + std::to_string(problem.keys_of_chunk())
                                          : "a row of 8 bits is one sum";
      case Reason::whole:
        return "auto leaves the keys of more than " + std::to_string(longest_packed_query) +
               " query rows whole; splits=<n> cuts them, which shows in no bit";
      case Reason::fills_device:
        return "auto fills the device's compute units";
      case Reason::device_is_full:
        return "auto: query tiles alone fill the device, or the keys are too few";
      case Reason::lists:
        return "the walks of lists are not cut; they take " + std::to_string(plan.workspace_bytes) +
               " bytes of workspace";
      case Reason::beyond_workspace:
        return "the call's workspace has no room for the parts of one sequence, or of one row of each";
      case Reason::beyond_kernels:
        return "more chunks, heads or rows than kernels of split keys count";
      case Reason::two_lists:
        return "the parts of two lists are merged";
    }
    return {};
  };
  if (plan.second_splits != 0)
    return std::to_string(plan.splits) + " and, of the second list, " + std::to_string(plan.second_splits) + ", " +
           std::to_string(plan.workspace_bytes) + " bytes of workspace" + rounds_of(plan, problem) + ": " + reason();
  if (plan.splits == 1) return "1: " + reason();
  const std::uint32_t chunks = chunks_of(problem);
  const std::uint32_t run = (chunks + plan.splits - 1) / plan.splits;
  return std::to_string(plan.splits) + ", each up to " + std::to_string(run) +
         (run == 1 ? " chunk of " : " chunks of ") + std::to_string(problem.keys_of_chunk()) + " keys, " +
         std::to_string(plan.workspace_bytes) + " bytes of workspace" + rounds_of(plan, problem) + ": " + reason() +
         "; " + describe_who_merges(plan, problem, shape, target);
}

}  // namespace wavejit::attention_forward
