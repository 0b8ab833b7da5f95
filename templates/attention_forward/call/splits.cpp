// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/call/splits.h"

#include <algorithm>
#include <optional>

#include "templates/attention/call/key_lists.h"
#include "templates/attention/call/numbers.h"
#include "templates/attention_forward/call/merging.h"
#include "templates/attention_forward/call/mix.h"
#include "templates/attention_forward/call/pairs.h"
#include "templates/attention_forward/call/route.h"
#include "templates/attention_forward/call/shared_chunks.h"
#include "templates/attention_forward/call/walks/lists.h"
#include "templates/attention_forward/kernel/combine/parameters.h"
#include "templates/attention_forward/kernel/parameters.h"

namespace wavejit::attention_forward {
namespace {

using attention::ceil_div;
using attention::KeysToCut;
using Reason = SplitPlan::Reason;

// A guess: workgroups of few rows that a compute unit has at a time.
constexpr std::uint64_t workgroups_per_compute_unit = 2;
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

KeysToCut keys_to_cut(const AttentionProblem& problem, const boards::Board& target) {
  return {.keys = problem.walked_keys(),
          .chunk_keys = problem.keys_of_chunk(),
          .chunks = chunks_of(problem),
          .workgroups = workgroups_of(problem, target),
          .uneven_lengths = problem.uneven_lengths};
}

// Fewer runs: one workgroup a compute unit, whose waves share chunks, if that saves at least a tenth of the time. If runs
// wait for a free place already, there are none: waiting evens out differences of memory and lengths.
std::optional<std::uint64_t> shared_runs(const AttentionProblem& problem, const boards::Board& target,
                                         const KeysToCut& cut, std::uint64_t runs) {
  const auto units = static_cast<std::uint64_t>(target.compute_units);
  const auto shares = [&](std::uint64_t count) {
    return shares_chunks(problem, static_cast<std::uint32_t>(count), target);
  };
  if (cut.workgroups > units || cut.workgroups * runs > workgroups_per_compute_unit * units || shares(runs)) return {};
  const std::uint64_t run_chunks = ceil_div(cut.chunks, std::min(units / cut.workgroups, cut.chunks));
  const std::uint64_t fewer = ceil_div(cut.chunks, run_chunks);
  if (!shares(fewer)) return {};
  const std::uint64_t parts = std::max(cut.workgroups * fewer * shared_parts_of_tile / units, least_parts_of_tile);
  const std::uint64_t tiles = tiles_of_run(cut, ceil_div(cut.chunks, runs));
  const bool saves = tiles_of_run(cut, run_chunks) * parts * 10 < tiles * parts_of_tile * 9;
  return saves ? std::optional(fewer) : std::nullopt;
}

// Runs that make the device full and leave little of it empty at the end.
SplitPlan fill_device(const AttentionProblem& problem, const boards::Board& target, bool may_share_chunks) {
  const KeysToCut cut = keys_to_cut(problem, target);
  const attention::DeviceToFill device = {
      .places = workgroups_per_compute_unit * static_cast<std::uint64_t>(target.compute_units),
      .merge_cost = 2,
      .fillings_of_uneven_lengths = 16};
  std::uint64_t runs = ceil_div(cut.chunks, chunks_a_run(cut, device));
  if (may_share_chunks) runs = shared_runs(problem, target, cut, runs).value_or(runs);
  if (runs <= 1) return {{.reason = Reason::device_is_full}};
  return {{.runs = static_cast<std::uint32_t>(runs), .reason = Reason::fills_device}};
}

SplitPlan choose(const AttentionProblem& problem, const boards::Board& target, std::optional<std::int32_t> kv_splits,
                 bool pinned) {
  const std::uint32_t chunks = chunks_of(problem);
  if (problem.splits > 0) {
    if (problem.splits > 1 && chunks <= 1) return {{.reason = Reason::one_chunk}};
    return {{.runs = std::min(problem.splits, std::max(chunks, 1U)), .reason = Reason::asked_by_call}};
  }
  if (chunks <= 1) return {{.reason = Reason::one_chunk}};
  if (kv_splits)
    return {{.runs = std::min(static_cast<std::uint32_t>(*kv_splits), chunks), .reason = Reason::asked_by_engine}};
  // Longer queries fill the device by themselves, or would leave parts of many rows. Of lists a query is as many.
  if (!problem.shape.listed && problem.query_length > longest_packed_query) return {{.reason = Reason::whole}};
  return fill_device(problem, target, !pinned && !has_parts_by_sequence(problem));
}

// Kernels divide by multiplication (emit/split.cpp): exact while heads · splits · heads < 2³².
std::uint64_t most_runs(std::uint64_t heads) { return 0xFFFFFFFF / (heads * heads); }
// They are z of the grid where keys are listed.
std::uint64_t most_listed_runs(const AttentionProblem& problem) {
  constexpr std::uint64_t most_of_grid = 0xFFFF;
  return std::min(most_runs(problem.query_heads), most_of_grid / problem.kv_heads);
}

// The plan of one kernel that walks the keys of all sequences. Its records stand `rows_of_head` rows of a head after
// those of the one before.
SplitPlan plan_all(const AttentionProblem& problem, const boards::Board& target, std::optional<std::int32_t> kv_splits,
                   bool pinned, std::uint64_t rows_of_head) {
  SplitPlan plan = choose(problem, target, kv_splits, pinned);
  if (plan.runs == 1) return plan;
  const std::uint64_t heads = problem.query_heads;
  plan.runs = static_cast<std::uint32_t>(std::min<std::uint64_t>(plan.runs, most_runs(heads)));
  if (problem.shape.listed)
    plan.runs = static_cast<std::uint32_t>(std::min<std::uint64_t>(plan.runs, most_listed_runs(problem)));
  if (plan.runs <= 1) return {{.reason = Reason::beyond_kernels}};
  const std::uint32_t slots = chunks_of(problem);
  if (problem.shape.packed_heads &&
      rows_of_head * problem.group() * slots >=
          reach_of_records / static_cast<std::uint64_t>(attention_combine::record_bytes(problem.shape.head_dim_v)))
      [[unlikely]]
    return {{.reason = Reason::beyond_kernels}};
  const auto bytes = attention_combine::workspace_bytes(problem.query_rows, heads, slots, problem.shape.head_dim_v);
  if (slots > attention_combine::max_slots || !bytes) [[unlikely]]
    return {{.reason = Reason::beyond_kernels}};
  plan.run_chunks = static_cast<std::uint32_t>(ceil_div(slots, plan.runs));
  plan.workspace_bytes = *bytes;
  return plan;
}

// The sequences of a round as a problem of their own.
AttentionProblem round_of(const AttentionProblem& problem, std::uint64_t sequences) {
  AttentionProblem round = problem;
  round.batch = static_cast<std::uint32_t>(sequences);
  round.query_rows = sequences * problem.query_length;
  return round;
}

// The same within a workspace: all sequences at once where it has room for them, else in rounds that are as even as
// whole sequences allow.
SplitPlan plan_walk(const AttentionProblem& problem, const boards::Board& target, std::optional<std::int32_t> kv_splits,
                    bool pinned, std::uint64_t reach) {
  SplitPlan plan = plan_all(problem, target, kv_splits, pinned, problem.query_rows);
  if (plan.runs == 1) return plan;
  const bool has_workspace = reach != any_reach;
  const bool by_sequence = has_parts_by_sequence(problem);
  if (plan.workspace_bytes <= (has_workspace ? reach : most_workspace) && !by_sequence) [[likely]]
    return plan;
  const bool asked_by_call = plan.reason == Reason::asked_by_call;
  if (problem.packed_queries && !by_sequence) {
    if (!has_workspace || asked_by_call) return plan;
    return {{.reason = Reason::beyond_workspace}};
  }
  const std::uint64_t of_sequence = plan.workspace_bytes / problem.query_rows * problem.query_length;
  // A caller that gives a number of splits brings what an engine would take, or all, or is told that it does not fit.
  const bool as_an_engine = !has_workspace || (asked_by_call && reach < of_sequence * problem.batch);
  const std::uint64_t sequences =
      attention::sequences_within(problem.batch, of_sequence, as_an_engine ? most_workspace : reach);
  if (sequences == 0 && !as_an_engine) return {{.reason = Reason::beyond_workspace}};
  const AttentionProblem round = round_of(problem, std::max<std::uint64_t>(sequences, 1));
  // A device that a few sequences leave half empty wants more runs.
  SplitPlan of_round =
      plan_all(round, target, kv_splits, pinned, by_sequence ? problem.query_length : round.query_rows);
  if (of_round.runs == 1) return of_round;
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
    of_run = ceil_div(first + second, std::uint64_t{choose(both, target, kv_splits, true).runs});
  }
  const auto runs = [&](std::uint64_t chunks) {
    return static_cast<std::uint32_t>(std::min(ceil_div(chunks, of_run), most_listed_runs(problem)));
  };
  return {{.runs = runs(first),
           .second_runs = runs(second),
           .run_chunks = static_cast<std::uint32_t>(of_run),
           .reason = Reason::two_lists}};
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
  const std::uint64_t sequences = attention::sequences_within(problem.batch, of_sequence, limit);
  const AttentionProblem round = round_of(problem, std::max<std::uint64_t>(sequences, 1));
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
  if (!problem.may_share_call() || problem.query_length > longest_packed_query) return false;
  const auto bytes = attention_combine::workspace_bytes(problem.query_rows, problem.query_heads, chunks_of(problem),
                                                        problem.shape.head_dim_v);
  return bytes && *bytes > most_workspace;
}

namespace {

// A pinned kernel mostly has waves that do not share chunks; else the pin says how many do, or that the number of
// workgroups decides.
bool shares_in(const AttentionProblem& problem, std::uint32_t runs, const boards::Board& target,
               const families::Toggles& toggles) {
  if (runs != 1 && has_parts_by_sequence(problem)) [[unlikely]]
    return false;
  if (!toggles.pins_kernels()) [[likely]]
    return shares_chunks(problem, runs, target);
  const Pins pins = pins_of(toggles);
  if (pins.chunk_waves) return *pins.chunk_waves != 1 && can_share(problem.shape, target, runs != 1);
  return pins.shares_chunks && shares_chunks(problem, runs, target);
}

// Whether split keys are merged in one launch by the kernel that is pinned: one that has packed heads.
bool merges_in(const AttentionProblem& problem, std::uint32_t runs, const boards::Board& target,
               const families::Toggles& toggles) {
  const bool shares = shares_in(problem, runs, target, toggles);
  if (!merges_in_walk(problem, shares, target)) return false;
  if (!toggles.pins_kernels()) return true;
  const Pins pins = pins_of(toggles);
  return pipeline_of(problem.shape.of_split_kernel(), target, pins) == Pipeline::generic &&
         can_merge(problem.shape, target, shares, pins);
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
    return {{.workspace_bytes = walk_bytes(problem).value_or(0), .reason = Reason::lists}};
  if (problem.shape.bool_mask) [[unlikely]]
    return plan_masked(problem, target, toggles, reach);
  if (problem.second_top_k != 0) [[unlikely]]
    return plan_two_lists(problem, target, kv_splits, reach);
  const bool pinned = toggles.pins_kernels();
  const bool one_walk = pinned || problem.splits > 1 || kv_splits.value_or(1) > 1;
  std::uint32_t few_rows = one_walk ? 0 : few_rows_of(problem);
  if (few_rows == 0) [[likely]] {
    SplitPlan plan = plan_walk(problem, target, kv_splits, pinned, reach);
    if (plan.runs != 1) [[unlikely]]
      plan.merged = merges_in(problem, plan.runs, target, toggles);
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
  return {{.reason = Reason::beyond_workspace}, few_rows_of(problem)};
}

std::uint32_t arrivals_of(const AttentionProblem& problem, const SplitPlan& plan) {
  if (!plan.merged) return 0;
  // Tiles have 32 rows at the least, and four waves at the most where they share them: else a wave for 32 rows, in
  // tiles of four such waves at the most.
  constexpr std::uint64_t rows_of_wave = 32;
  constexpr std::uint64_t most_waves = 4;
  const std::uint64_t sequences = plan.sequences_of(0, problem.batch);
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
      shape.shared_chunks = shares_in(problem, plan.runs, target, toggles);
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
  shape.split = plan.runs != 1;
  // A pinned kernel has no mixes. Workgroups of all sequences count: those of long ones end at once.
  shape.shared_chunks = shares_chunks(few, plan.runs, target);
  return shape;
}

CallPlan plan_call(const AttentionProblem& problem, const boards::Board& target, const families::Toggles& toggles,
                   std::uint64_t reach) {
  CallPlan plan = {.problem = problem, .splits = plan_splits(problem, target, toggles, reach)};
  plan.code = kernel_shape(problem, plan.splits, target, toggles).code();
  return plan;
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

std::string why(const SplitPlan& plan, const AttentionProblem& problem) {
  if (plan.reason == Reason::one_chunk && !problem.shape.has_chunks()) return "a row of 8 bits is one sum";
  if (plan.reason == Reason::whole)
    return "auto leaves the keys of more than " + std::to_string(longest_packed_query) +
           " query rows whole; splits=<n> cuts them, which shows in no bit";
  std::string reason = attention::describe(plan.reason, problem.keys_of_chunk());
  return plan.reason == Reason::lists
             ? reason + "; they take " + std::to_string(plan.workspace_bytes) + " bytes of workspace"
             : reason;
}

}  // namespace

std::string describe(const SplitPlan& plan, const AttentionProblem& problem, const AttentionShape& shape,
                     const boards::Board& target) {
  std::string text = attention::describe_runs(plan, problem.keys_of_chunk(), problem.batch) + ": " + why(plan, problem);
  return plan.may_go_whole() ? text + "; " + describe_who_merges(plan, problem, shape, target) : text;
}

}  // namespace wavejit::attention_forward
