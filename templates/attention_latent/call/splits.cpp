// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_latent/call/splits.h"

#include <algorithm>
#include <optional>

#include "templates/attention/call/merge_costs.h"
#include "templates/attention/call/numbers.h"
#include "templates/attention/kernel/canon.h"

namespace wavejit::attention_latent {
namespace {

using attention::ceil_div;
using attention::KeysToCut;
using Reason = SplitPlan::Reason;

std::uint64_t first_chunks_of(const LatentProblem& problem) {
  return ceil_div(problem.walked_keys(), problem.chunk_keys());
}
std::uint64_t second_chunks_of(const LatentProblem& problem) {
  return ceil_div(problem.second_top_k, problem.chunk_keys());
}
// Chunks of both lists.
std::uint64_t chunks_of(const LatentProblem& problem) { return first_chunks_of(problem) + second_chunks_of(problem); }
std::uint64_t keys_of(const LatentProblem& problem) {
  return std::uint64_t{problem.walked_keys()} + problem.second_top_k;
}

// How many workgroups `sequences` sequences have in tiles of `rows` rows. A workgroup has rows of one list, or of one
// sequence.
std::uint64_t workgroups_of(const LatentProblem& problem, std::uint64_t sequences, Rows rows) {
  const bool listed = problem.shape.listed;
  const std::uint64_t tiled = listed ? sequences * problem.query_length : sequences;
  const std::uint64_t of_tiled = listed ? problem.heads : std::uint64_t{problem.query_length} * problem.heads;
  return tiled * ceil_div(of_tiled, static_cast<std::uint64_t>(count_of(rows)));
}

std::uint64_t places_of(const boards::Board& board) {
  return static_cast<std::uint64_t>(board.compute_units);  // two tiles of keys fill the LDS of one
}

// Where half as many rows, each chunk a run or as many runs as the call asks for, leave compute units idle, twice as many
// workgroups take less time. Beyond that a key is read once for twice the rows.
Rows rows_of(const LatentProblem& problem, const boards::Board& board) {
  if (problem.shape.rows != Rows::r128) return problem.shape.rows;
  const std::uint64_t chunks = chunks_of(problem);
  const bool asked = problem.splits != 0 && problem.second_top_k == 0;
  const std::uint64_t runs = asked ? std::min<std::uint64_t>(problem.splits, chunks) : chunks;
  const bool has_places = workgroups_of(problem, problem.batch, Rows::r64) * runs <= places_of(board);
  return has_places ? Rows::r64 : most_rows(problem.shape, board);
}

// Chunks a run, so that the device is full and little of it empty at the end.
std::uint64_t chunks_a_run_of(const LatentProblem& problem, std::uint64_t sequences, Rows rows,
                              const boards::Board& board) {
  const KeysToCut cut = {.keys = keys_of(problem),
                         .chunk_keys = problem.chunk_keys(),
                         .chunks = chunks_of(problem),
                         .workgroups = workgroups_of(problem, sequences, rows),
                         .uneven_lengths = problem.uneven_lengths};
  return attention::chunks_a_run(cut, {.places = places_of(board), .merge_cost = 1, .fillings_of_uneven_lengths = 4});
}

// Costs of workgroups with 32 rows, fitted by `./dev bench merge-costs` to what `wavejit profile` predicts of 2 to 16
// chunks of 16 and 32 heads, 1 to 64 sequences. By them no such call is faster in one launch, by some hundred cycles
// where little is merged; it would be if a second launch waited longer. Workgroups with more rows have more to merge
// than one of them should, two chunks already.
constexpr attention::CostsOf<attention::MergeCosts> merge_costs[] = {
    {.target = "gfx942",
     .costs = {.one = {.arrival = 5011, .turn = 1786, .bytes_a_cycle = 49, .all_bytes_a_cycle = 829},
               .two = {.second_launch = 3463, .chunk = 149, .second_bytes_a_cycle = 2165}}},
    {.target = "gfx950",
     .costs = {.one = {.arrival = 5059, .turn = 1593, .bytes_a_cycle = 41, .all_bytes_a_cycle = 3830},
               .two = {.second_launch = 3761, .chunk = 164, .second_bytes_a_cycle = 8008}}},
};
// What lists add to each: whoever merges looks up how many parts a row has.
constexpr std::uint32_t list_arrival = 750;
constexpr std::uint32_t list_second_launch = 1100;

std::optional<attention::MergeCosts> costs_of(const LatentProblem& problem, Rows rows, const boards::Board& board) {
  const attention::MergeCosts* of_target = attention::costs_of<attention::MergeCosts>(merge_costs, board.id);
  if (rows != Rows::r32 || of_target == nullptr) return std::nullopt;
  attention::MergeCosts costs = *of_target;
  if (problem.shape.listed) {
    costs.one.arrival += list_arrival;
    costs.two.second_launch += list_second_launch;
  }
  return costs;
}

// The parts that workgroups of 32 rows leave for `queries` queries.
attention::PartsToMerge parts_of(const LatentProblem& problem, std::uint64_t queries) {
  const std::uint64_t of_tiled =
      problem.shape.listed ? problem.heads : std::uint64_t{problem.query_length} * problem.heads;
  const auto rows = static_cast<int>(std::min<std::uint64_t>(of_tiled, wave_rows));
  const std::uint64_t chunks = chunks_of(problem);
  const auto turns = static_cast<std::uint64_t>(merge_turns(problem.shape, rows));
  // What a workgroup's lanes load, those without rows included: few rows take a wave as long as many do.
  const std::uint64_t bytes_of_turn =
      std::uint64_t{threads} * record_load_bytes * static_cast<std::uint64_t>(merge_loads(problem.shape));
  return {
      .chunks = chunks,
      .bytes = chunks * turns * bytes_of_turn,
      .all_bytes = queries * problem.heads * chunks * static_cast<std::uint64_t>(record_bytes(problem.shape.dims_v())),
      .turns = turns};
}

bool can_merge(const LatentProblem& problem) {
  // A second list is walked by a launch of its own, which leaves parts, too.
  return problem.second_top_k == 0;
}

// Whether the last workgroup to arrive merges the parts of its rows.
bool merges(const LatentProblem& problem, Rows rows, std::uint64_t queries, const boards::Board& board) {
  return can_merge(problem) &&
         attention::in_one_launch(problem.launches, costs_of(problem, rows, board), parts_of(problem, queries));
}

// Runs of `run_chunks` chunks, whose parts are those of `queries` queries.
SplitPlan runs_of(const LatentProblem& problem, Rows rows, std::uint64_t run_chunks, std::uint64_t queries,
                  const boards::Board& board) {
  const std::uint64_t runs = ceil_div(first_chunks_of(problem), run_chunks);
  const std::uint64_t second_runs = ceil_div(second_chunks_of(problem), run_chunks);
  if (runs <= 1 && second_runs == 0)
    return {{.reason = problem.splits > 1 ? Reason::asked_by_call : Reason::device_is_full}, rows};
  const auto record = static_cast<std::uint64_t>(record_bytes(problem.shape.dims_v()));
  return {{.runs = static_cast<std::uint32_t>(runs),
           .second_runs = static_cast<std::uint32_t>(second_runs),
           .run_chunks = static_cast<std::uint32_t>(run_chunks),
           .workspace_bytes = queries * problem.heads * chunks_of(problem) * record,
           .reason = second_runs != 0     ? Reason::two_lists
                     : problem.splits > 1 ? Reason::asked_by_call
                                          : Reason::fills_device,
           .merged = merges(problem, rows, queries, board)},
          rows};
}

}  // namespace

SplitPlan plan_splits(const LatentProblem& problem, const boards::Board& board, std::uint64_t reach) {
  const std::uint64_t chunks = chunks_of(problem);
  const Rows rows = rows_of(problem, board);
  const auto whole = [&](Reason reason) { return SplitPlan{{.reason = reason}, rows}; };
  // A second list is walked by a launch of its own, whose parts are merged with the first one's.
  const bool second = problem.second_top_k != 0;
  if (!second) {
    if (chunks <= 1) return whole(Reason::one_chunk);
    if (problem.splits == 1) return whole(Reason::asked_by_call);
    if (chunks > most_chunks) return whole(Reason::beyond_kernels);
  }
  const bool asked = problem.splits > (second ? 0U : 1U);
  const std::uint64_t longer = std::max(first_chunks_of(problem), second_chunks_of(problem));
  const auto chunks_a_run = [&](std::uint64_t sequences) {
    return asked ? ceil_div(longer, std::min<std::uint64_t>(problem.splits, longer))
                 : chunks_a_run_of(problem, sequences, rows, board);
  };
  const SplitPlan all = runs_of(problem, rows, chunks_a_run(problem.batch), problem.query_rows, board);
  if (!all.parts()) return all;
  const bool has_workspace = reach != any_reach;
  const std::uint64_t room = has_workspace ? reach : attention::most_workspace;
  if (all.workspace_bytes <= room) return all;
  // A caller that says how many, and brings too little, is told so.
  if (has_workspace && asked) return all;
  if (problem.packed_queries) return asked || second ? all : whole(Reason::beyond_workspace);
  std::uint64_t sequences = attention::sequences_within(problem.batch, all.workspace_bytes / problem.batch, room);
  if (sequences == 0) {
    if (second && has_workspace) return all;
    if (!asked && !second) return whole(Reason::beyond_workspace);
    sequences = 1;
  }
  SplitPlan plan = runs_of(problem, rows, chunks_a_run(sequences), sequences * problem.query_length, board);
  if (plan.parts()) plan.sequences_a_round = static_cast<std::uint32_t>(sequences);
  return plan;
}

LatentShape shape_of(const LatentProblem& problem, const SplitPlan& plan) {
  LatentShape shape = problem.shape;
  shape.rows = plan.rows;
  return of_runs(shape, plan.parts(), plan.merged);
}

CallPlan plan_call(const LatentProblem& problem, const boards::Board& board, std::uint64_t reach) {
  CallPlan plan = {.problem = problem, .splits = plan_splits(problem, board, reach)};
  plan.code = shape_of(problem, plan.splits).shape().code;
  return plan;
}

std::uint32_t arrivals_of(const LatentProblem& problem, const SplitPlan& plan) {
  if (!plan.merged) return 0;
  return static_cast<std::uint32_t>(workgroups_of(problem, plan.sequences_of(0, problem.batch), plan.rows) * waves);
}

std::string describe(const SplitPlan& plan, const LatentProblem& problem, const boards::Board& board) {
  std::string text = attention::describe_runs(plan, problem.chunk_keys(), problem.batch) + ": " +
                     attention::describe(plan.reason, problem.chunk_keys());
  if (!plan.may_go_whole()) return text;
  const std::uint64_t queries =
      plan.sequences_a_round != 0 ? std::uint64_t{plan.sequences_a_round} * problem.query_length : problem.query_rows;
  return text + "; " +
         attention::describe_merge(problem.launches, plan.merged, costs_of(problem, plan.rows, board),
                                   parts_of(problem, queries));
}

}  // namespace wavejit::attention_latent
