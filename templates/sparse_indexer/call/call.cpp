// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/sparse_indexer/call/call.h"

#include <algorithm>

#include "templates/attention/call/data_type.h"
#include "templates/attention/call/device_lengths.h"
#include "templates/attention/call/numbers.h"
#include "templates/sparse_indexer/call/descriptor.h"

namespace wavejit::sparse_indexer {
namespace {

using attention::address;
using attention::stride_bytes;

// A guess: to begin (queries, weights, entries of the block table) takes a workgroup as long as this many tiles of its
// waves.
constexpr std::uint64_t start_tiles = 3;
constexpr std::uint64_t most_turns = 4;
constexpr std::uint64_t max_grid_y = 0xFFFF;

constexpr std::uint64_t parts(std::uint64_t all, std::uint64_t most) { return (all + most - 1) / most; }

}  // namespace

Geometry geometry_of(const IndexerProblem& problem, std::uint32_t sequences, std::uint32_t rows,
                     const boards::Board& board) {
  constexpr std::uint32_t all_waves = shared_rows_shift;
  Geometry geometry = {.rows_shift = problem.shape.shared || rows >= scores_waves ? all_waves : rows >= 2 ? 1U : 0U};
  const std::uint64_t tiles = parts(problem.key_length, tile_keys);
  const std::uint64_t places = static_cast<std::uint64_t>(board.compute_units) *
                               static_cast<std::uint64_t>(scores_waves_per_simd(problem.shape.blocks));
  const std::uint64_t groups =
      sequences * ((std::uint64_t{rows} + (1U << geometry.rows_shift) - 1) >> geometry.rows_shift);
  const std::uint64_t runs_of_group = std::uint64_t{scores_waves} >> geometry.rows_shift;
  // A workgroup has a wave on each SIMD. As long runs as fill all places once, or several times where that leaves fewer
  // of them empty.
  std::uint64_t run = parts(tiles, runs_of_group);
  std::uint64_t least = parts(groups, places) * (run + start_tiles);
  for (std::uint64_t turns = 1; turns <= most_turns; ++turns) {
    const std::uint64_t workgroups = turns * places / groups;
    if (workgroups == 0) continue;
    const std::uint64_t of_turn = parts(tiles, workgroups * runs_of_group);
    if (turns * (of_turn + start_tiles) >= least) continue;
    least = turns * (of_turn + start_tiles);
    run = of_turn;
  }
  run = std::clamp<std::uint64_t>(run, parts(tiles, max_grid_y * runs_of_group), tiles);
  geometry.wave_tiles = static_cast<std::uint32_t>(run);
  geometry.runs = static_cast<std::uint32_t>(parts(tiles, run * runs_of_group));
  return geometry;
}

IndexerCall::IndexerCall(const wavejit_sparse_indexer_arguments& call, const IndexerProblem& problem,
                         const boards::Board& board, const families::Toggles& toggles)
    : CallOf(call, problem, board, toggles),
      parts_(parts_of(problem, board)),
      rounds_{.sequences = problem.batch, .rows = problem.query_length} {
  workspace = call.split.workspace;
  judges_device_memory = (call.head.flags & WAVEJIT_CHECK_LENGTHS) != 0 && call.key_lengths != nullptr;
  const Parts whole = {.count = 1, .keys = problem.key_length};
  const std::uint64_t reach = call.split.workspace != nullptr ? call.split.workspace_bytes : most_workspace;
  if (!problem.keeps_scores) {
    // Scores have a tensor: a workspace shortens long rows, and no call needs one.
    const std::uint64_t all = problem.rows() * chosen_row_bytes(problem, parts_);
    if (call.split.workspace == nullptr || reach < all) parts_ = whole;
    if (parts_.count == 1) return;
  } else if (reach < score_row_bytes(problem) + chosen_row_bytes(problem, parts_)) {
    parts_ = whole;
  }
  rounds_ = rounds_of(problem, parts_, reach);
  workspace_bytes = rounds_.workspace_bytes;
  rounds = rounds_.count;
}

RowArguments IndexerCall::rows_of_round() const {
  const auto rows_of_sequence = static_cast<std::uint32_t>(parts(problem_.query_length, rounds_.rows));
  const std::uint32_t first_batch = round / rows_of_sequence * rounds_.sequences;
  const std::uint32_t first_row = round % rows_of_sequence * rounds_.rows;
  return {.key_lengths = address(call_.key_lengths),
          .key_begins = address(call_.key_begins),
          .key_ends = address(call_.key_ends),
          .seen = attention::seen_arguments(problem_.query_length, problem_.key_length, problem_.seen),
          .first_batch = first_batch,
          .first_row = first_row,
          .end_row = std::min(first_row + rounds_.rows, problem_.query_length)};
}

Result<void> IndexerCall::plan(Kernels /*kernels*/, const void* memory, families::LaunchPlan& plan) {
  const RowArguments rows = rows_of_round();
  sequences_ = std::min(rounds_.sequences, problem_.batch - rows.first_batch);
  if (problem_.keeps_scores) {
    scores_row_stride_ = score_row_bytes(problem_);
    scores_batch_stride_ = scores_row_stride_ * rounds_.rows;
    scores_ = address(memory) - (rows.first_batch * scores_batch_stride_) - (rows.first_row * scores_row_stride_);
  } else {
    scores_ = address(call_.scores.data);
    scores_batch_stride_ = stride_bytes(call_.scores, 0, sizeof(float));
    scores_row_stride_ = stride_bytes(call_.scores, 1, sizeof(float));
  }
  if (problem_.shape.scores) add_scores(rows, plan);
  if (problem_.shape.selects) add_select(rows, memory, plan);
  return {};
}

void IndexerCall::add_scores(const RowArguments& rows, families::LaunchPlan& plan) {
  const std::uint64_t bytes = attention::element_bytes_of(call_.queries);
  const std::uint32_t round_rows = rows.end_row - rows.first_row;
  const Geometry geometry = geometry_of(problem_, sequences_, round_rows, board_);
  scores_arguments_ = {.rows = rows,
                       .queries = address(call_.queries.data),
                       .keys = address(call_.keys.data),
                       .weights = address(call_.weights.data),
                       .key_scales = address(call_.key_scales.data),
                       .scores = scores_,
                       .queries_batch_stride = stride_bytes(call_.queries, 0, bytes),
                       .queries_row_stride = stride_bytes(call_.queries, 1, bytes),
                       .keys_batch_stride = stride_bytes(call_.keys, 0, bytes),
                       .keys_row_stride = stride_bytes(call_.keys, 1, bytes),
                       .weights_batch_stride = stride_bytes(call_.weights, 0, sizeof(float)),
                       .weights_row_stride = stride_bytes(call_.weights, 1, sizeof(float)),
                       .scores_batch_stride = scores_batch_stride_,
                       .scores_row_stride = scores_row_stride_,
                       .pages = {},
                       .queries_head_stride = static_cast<std::uint32_t>(stride_bytes(call_.queries, 2, bytes)),
                       .heads = problem_.heads,
                       .rows_shift = geometry.rows_shift,
                       .wave_tiles = geometry.wave_tiles,
                       .fill_hidden = problem_.keeps_scores ? 0U : 1U};
  // Keys without scales all have the one number that the kernel brings.
  if (call_.key_scales.data != nullptr) {
    scores_arguments_.scales_batch_stride = stride_bytes(call_.key_scales, 0, sizeof(float));
    scores_arguments_.scales_row_stride = stride_bytes(call_.key_scales, 1, sizeof(float));
  }
  if (problem_.shape.paged) {
    scores_arguments_.pages = attention::page_arguments(call_.keys, call_.pages);
    constexpr std::uint32_t granule_shift = 4;
    scores_arguments_.granule_shift = call_.keys.sizes[1] == 1 ? 0 : granule_shift;
  }
  plan.add(
      {.x = (round_rows + (1U << geometry.rows_shift) - 1) >> geometry.rows_shift, .y = geometry.runs, .z = sequences_},
      scores_threads, scores_arguments_);
}

void IndexerCall::add_select(const RowArguments& rows, const void* memory, families::LaunchPlan& plan) {
  const auto row_stride =
      static_cast<std::uint64_t>(call_.indices_row_stride != 0 ? call_.indices_row_stride : call_.top_k);
  select_arguments_ = {.rows = rows,
                       .scores = scores_,
                       .indices = address(call_.indices),
                       .values = address(call_.values),
                       .counts = address(call_.counts),
                       .scores_batch_stride = scores_batch_stride_,
                       .scores_row_stride = scores_row_stride_,
                       .indices_row_stride = row_stride * sizeof(std::int32_t),
                       .top_k = problem_.top_k,
                       .part_keys = parts_.keys};
  families::Launch launch = {.grid_x = rows.end_row - rows.first_row,
                             .grid_y = sequences_,
                             .grid_z = parts_.count,
                             .threads = select_threads,
                             .arguments = &select_arguments_,
                             .argument_bytes = sizeof select_arguments_};
  const std::size_t kernel = problem_.shape.scores ? 1 : 0;
  if (parts_.count == 1) return plan.add(launch, kernel);

  // The keys and scores that each part chooses lie after the scores of the round's rows, addressed as if they began
  // with row 0.
  const std::uint64_t part_bytes = std::uint64_t{problem_.top_k} * sizeof(std::int32_t);
  const std::uint64_t row_bytes = part_bytes * parts_.count;
  const std::uint64_t round_rows = std::uint64_t{rounds_.sequences} * rounds_.rows;
  const std::uint64_t of_scores = problem_.keeps_scores ? round_rows * scores_row_stride_ : 0;
  // Rows are numbered through all sequences, and a round may have the first rows of one only.
  const std::uint64_t first = (std::uint64_t{rows.first_batch} * problem_.query_length + rows.first_row) * row_bytes;
  const std::uint64_t keys = address(memory) + of_scores - first;
  const std::uint64_t values = keys + (round_rows * row_bytes);
  merge_arguments_ = select_arguments_;
  select_arguments_.indices = keys;
  select_arguments_.values = values;
  select_arguments_.counts = 0;
  select_arguments_.indices_row_stride = row_bytes;
  select_arguments_.part_stride = part_bytes;
  plan.add(launch, kernel);

  const std::uint32_t columns = parts_.count * problem_.top_k;
  merge_arguments_.rows = {.seen = {.query_length = problem_.query_length,
                                    .key_length = columns,
                                    .window_left = unlimited_window,
                                    .window_right = unlimited_window},
                           .first_batch = rows.first_batch,
                           .first_row = rows.first_row,
                           .end_row = rows.end_row};
  merge_arguments_.scores = values;
  merge_arguments_.scores_batch_stride = row_bytes * problem_.query_length;
  merge_arguments_.scores_row_stride = row_bytes;
  merge_arguments_.keys = keys;
  merge_arguments_.part_keys = columns;
  launch.grid_z = 1;
  launch.arguments = &merge_arguments_;
  plan.add(launch, kernel);
}

std::string IndexerCall::descriptor(Line /*line*/) const {
  ProblemDescriptor descriptor = {
      .type = problem_.shape.scores ? problem_.shape.type : DataType::fp32,
      .batch = problem_.batch,
      .query_length = problem_.query_length,
      .key_length = problem_.key_length,
      .heads = problem_.heads,
      .page_size = problem_.shape.paged ? call_.keys.sizes[1] : 0,
      .top_k = problem_.top_k,
      .key_scales = call_.key_scales.data != nullptr,
      .scores = problem_.shape.scores && problem_.shape.selects && call_.scores.data != nullptr,
      .mask = attention::words_of(call_.mask),
      .key_lengths = {},
      .seed = {},
  };
  if (!descriptor.mask.causal) descriptor.mask.causal_prefix.reset();
  return to_text(descriptor);
}

Result<void> IndexerCall::judge(families::DeviceMemory& memory) const {
  return attention::check_key_lengths(memory, call_.key_lengths, problem_.batch, problem_.key_length,
                                      "the keys of a sequence");
}

families::WorkspaceWords IndexerCall::workspace_words() const {
  return {.reason = "scores of " + std::to_string(rounds_.sequences * std::uint64_t{rounds_.rows}) + " rows",
          .captured = "scores are kept until the list is made",
          .instead = "a workspace of wavejit_call_workspace bytes"};
}

}  // namespace wavejit::sparse_indexer
