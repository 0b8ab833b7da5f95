// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_latent/call/runs.h"

#include <algorithm>
#include <optional>

#include "templates/attention/call/merge_costs.h"
#include "templates/attention/call/numbers.h"
#include "templates/attention/kernel/canon.h"

namespace wavejit::attention_latent {
namespace {

using attention::ceil_div;
// Guesses: what a run costs beside its tiles of keys, and two launches beside one, in such tiles; how often a device is
// filled that lengths of its own may leave half empty; and what an engine's workspace is worth.
constexpr std::uint64_t run_cost = 1;
constexpr std::uint64_t combine_cost = 2;
constexpr std::uint64_t most_fillings = 8;
constexpr std::uint64_t fillings_of_uneven_lengths = 4;
constexpr std::uint64_t most_workspace = std::uint64_t{256} << 20U;

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

// Where half as many rows, each chunk a run, leave compute units idle, twice as many workgroups take less time. Beyond
// that a key is read once for twice the rows.
Rows rows_of(const LatentProblem& problem, const boards::Board& board) {
  if (problem.shape.rows != Rows::r128) return problem.shape.rows;
  const bool has_places = workgroups_of(problem, problem.batch, Rows::r64) * chunks_of(problem) <= places_of(board);
  return has_places ? Rows::r64 : most_rows(problem.shape, board);
}

// Chunks a run, so that the device is full and little of it empty at the end.
std::uint64_t choose_chunks(const LatentProblem& problem, std::uint64_t sequences, Rows rows,
                            const boards::Board& board) {
  const std::uint64_t chunks = chunks_of(problem);
  const std::uint64_t workgroups = workgroups_of(problem, sequences, rows);
  const std::uint64_t places = places_of(board);
  if (problem.uneven_lengths) {
    const std::uint64_t count = std::clamp<std::uint64_t>(fillings_of_uneven_lengths * places / workgroups, 1, chunks);
    return ceil_div(chunks, count);
  }
  const auto cost = [&](std::uint64_t of_run) {
    const std::uint64_t count = ceil_div(chunks, of_run);
    const std::uint64_t tiles = std::min(of_run * (problem.chunk_keys() / attention::tile_keys),
                                         ceil_div(keys_of(problem), attention::tile_keys));
    return (ceil_div(workgroups * count, places) * (tiles + run_cost)) + (count > 1 ? combine_cost : 0);
  };
  std::uint64_t best = chunks;
  std::uint64_t least = cost(chunks);
  for (std::uint64_t fillings = 1; fillings <= most_fillings; ++fillings) {
    const std::uint64_t most = std::min(fillings * places / workgroups, chunks);
    if (most <= 1) continue;
    const std::uint64_t of_run = ceil_div(chunks, most);
    if (const std::uint64_t of = cost(of_run); of < least) {
      best = of_run;
      least = of;
    }
    if (most == chunks) break;
  }
  return best;
}

// Costs of workgroups with 32 rows: fitted to what `wavejit profile` predicts of 1 to 16 chunks of 16 and 32 heads
// (docs/split-keys.md has them). Workgroups with more rows have more to merge than one of them should, two chunks
// already: 15,391 cycles of 64 heads on gfx950, where a second launch takes 12,788.
constexpr attention::MergeCosts merge_costs[] = {
    {.target = "gfx942",
     .arrival = 6400,
     .turn = 1000,
     .bytes_a_cycle = 60,
     .all_bytes_a_cycle = 3000,
     .second_launch = 11200,
     .chunk = 265,
     .second_bytes_a_cycle = 8000},
    {.target = "gfx950",
     .arrival = 5600,
     .turn = 1000,
     .bytes_a_cycle = 40,
     .all_bytes_a_cycle = 8000,
     .second_launch = 11300,
     .chunk = 310,
     .second_bytes_a_cycle = 16000},
};
// What lists add to each: whoever merges looks up how many parts a row has.
constexpr std::uint32_t list_arrival = 750;
constexpr std::uint32_t list_second_launch = 1100;

std::optional<attention::MergeCosts> costs_of(const LatentProblem& problem, Rows rows, const boards::Board& board) {
  const attention::MergeCosts* of_target = attention::costs_of(merge_costs, board.id);
  if (rows != Rows::r32 || of_target == nullptr) return std::nullopt;
  attention::MergeCosts costs = *of_target;
  if (problem.shape.listed) {
    costs.arrival += list_arrival;
    costs.second_launch += list_second_launch;
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

Runs runs_of(const LatentProblem& problem, Rows rows, std::uint64_t of_run, std::uint64_t queries,
             const boards::Board& board) {
  const std::uint64_t chunks = chunks_of(problem);
  const std::uint64_t count = ceil_div(first_chunks_of(problem), of_run);
  const std::uint64_t second_count = ceil_div(second_chunks_of(problem), of_run);
  if (count <= 1 && second_count == 0) return {.rows = rows};
  return {.rows = rows,
          .count = static_cast<std::uint32_t>(count),
          .second_count = static_cast<std::uint32_t>(second_count),
          .chunks = static_cast<std::uint32_t>(of_run),
          .workspace_bytes =
              queries * problem.heads * chunks * static_cast<std::uint64_t>(record_bytes(problem.shape.dims_v())),
          .merged = merges(problem, rows, queries, board)};
}

}  // namespace

Runs plan_runs(const LatentProblem& problem, const boards::Board& board, std::uint64_t reach) {
  const std::uint64_t chunks = chunks_of(problem);
  const Rows rows = rows_of(problem, board);
  const Runs whole = {.rows = rows};
  // A second list is walked by a launch of its own, whose parts are merged with the first one's.
  const bool second = problem.second_top_k != 0;
  if (!second && (chunks <= 1 || chunks > most_chunks || problem.splits == 1)) return whole;
  const bool asked = problem.splits > (second ? 0U : 1U);
  const std::uint64_t longer = std::max(first_chunks_of(problem), second_chunks_of(problem));
  const auto chunks_a_run = [&](std::uint64_t sequences) {
    return asked ? ceil_div(longer, std::min<std::uint64_t>(problem.splits, longer))
                 : choose_chunks(problem, sequences, rows, board);
  };
  const Runs all = runs_of(problem, rows, chunks_a_run(problem.batch), problem.query_rows, board);
  if (!all.parts()) return all;
  const bool has_workspace = reach != any_reach;
  if (all.workspace_bytes <= (has_workspace ? reach : most_workspace)) return all;
  // A caller that says how many, and brings too little, is told so.
  if (has_workspace && asked) return all;
  if (problem.packed_queries) return asked || second ? all : whole;
  const std::uint64_t of_sequence = all.workspace_bytes / problem.batch;
  std::uint64_t fitting =
      std::min<std::uint64_t>((has_workspace ? reach : most_workspace) / of_sequence, problem.batch);
  if (fitting == 0) {
    if (second && has_workspace) return all;
    if (!asked && !second) return whole;
    fitting = 1;
  }
  const std::uint64_t round = ceil_div(problem.batch, ceil_div(problem.batch, fitting));
  Runs runs = runs_of(problem, rows, chunks_a_run(round), round * problem.query_length, board);
  if (runs.parts()) runs.sequences_a_round = static_cast<std::uint32_t>(round);
  return runs;
}

LatentShape shape_of(const LatentProblem& problem, const Runs& runs) {
  LatentShape shape = problem.shape;
  shape.rows = runs.rows;
  return shape.of_runs(runs.parts(), runs.merged);
}

std::uint32_t arrivals_of(const LatentProblem& problem, const Runs& runs) {
  if (!runs.merged) return 0;
  const std::uint64_t sequences = runs.sequences_a_round != 0 ? runs.sequences_a_round : problem.batch;
  return static_cast<std::uint32_t>(workgroups_of(problem, sequences, runs.rows) * waves);
}

std::string describe(const Runs& runs, const LatentProblem& problem, const boards::Board& board) {
  if (runs.second_count != 0)
    return std::to_string(runs.count) + " and, of the second list, " + std::to_string(runs.second_count) +
           ", each up to " + std::to_string(runs.chunks) + (runs.chunks == 1 ? " chunk of " : " chunks of ") +
           std::to_string(problem.chunk_keys()) + " keys, " + std::to_string(runs.workspace_bytes) +
           " bytes of workspace: the parts of two lists are merged";
  if (runs.count == 1) {
    if (chunks_of(problem) <= 1) return "1: the keys are one chunk of " + std::to_string(problem.chunk_keys());
    if (problem.splits == 1) return "1: the call says so";
    return "1: tiles of rows fill the device, or parts would not fit";
  }
  const std::uint64_t queries =
      runs.sequences_a_round != 0 ? std::uint64_t{runs.sequences_a_round} * problem.query_length : problem.query_rows;
  return std::to_string(runs.count) + ", each up to " + std::to_string(runs.chunks) +
         (runs.chunks == 1 ? " chunk of " : " chunks of ") + std::to_string(problem.chunk_keys()) + " keys, " +
         std::to_string(runs.workspace_bytes) + " bytes of workspace" +
         (runs.sequences_a_round != 0 ? " for " + std::to_string(runs.sequences_a_round) + " sequences at a time"
                                      : "") +
         (problem.splits > 1 ? ": the call says so" : ": fills the device's compute units") + "; " +
         attention::describe_merge(problem.launches, runs.merged, costs_of(problem, runs.rows, board),
                                   parts_of(problem, queries));
}

}  // namespace wavejit::attention_latent
