// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention/call/split_plan.h"

#include <algorithm>

#include "templates/attention/call/numbers.h"
#include "templates/attention/call/second_list.h"
#include "templates/attention/kernel/canon.h"

namespace wavejit::attention {

std::uint64_t tiles_of_run(const KeysToCut& cut, std::uint64_t run_chunks) {
  return std::min<std::uint64_t>(run_chunks * (cut.chunk_keys / tile_keys),
                                 ceil_div(cut.keys, std::uint64_t{tile_keys}));
}

std::uint64_t chunks_a_run(const KeysToCut& cut, const DeviceToFill& device) {
  // Only the device knows how many keys each sequence has: many short runs even them out. Those beyond a sequence's end
  // cost.
  if (cut.uneven_lengths) {
    const std::uint64_t filling = device.fillings_of_uneven_lengths * device.places / cut.workgroups;
    return ceil_div(cut.chunks, std::clamp<std::uint64_t>(filling, 1, cut.chunks));
  }
  const auto cost = [&](std::uint64_t run_chunks) {
    const std::uint64_t runs = ceil_div(cut.chunks, run_chunks);
    return (ceil_div(cut.workgroups * runs, device.places) * (tiles_of_run(cut, run_chunks) + device.run_cost)) +
           (runs > 1 ? device.merge_cost : 0);
  };
  std::uint64_t best = cut.chunks;
  std::uint64_t least = cost(cut.chunks);
  for (std::uint64_t fillings = 1; fillings <= device.most_fillings; ++fillings) {
    const std::uint64_t most = std::min(fillings * device.places / cut.workgroups, cut.chunks);
    if (most <= 1) continue;
    const std::uint64_t run_chunks = ceil_div(cut.chunks, most);
    if (const std::uint64_t of_runs = cost(run_chunks); of_runs < least) {
      best = run_chunks;
      least = of_runs;
    }
    if (most == cut.chunks) break;
  }
  return best;
}

std::uint64_t sequences_within(std::uint64_t batch, std::uint64_t bytes_of_sequence, std::uint64_t room) {
  const std::uint64_t fitting = std::min(room / bytes_of_sequence, batch);
  return fitting == 0 ? 0 : ceil_div(batch, ceil_div(batch, fitting));
}

std::string describe(SplitPlan::Reason reason, std::uint64_t chunk_keys) {
  switch (reason) {
    case SplitPlan::Reason::asked_by_call:
      return "the call says so";
    case SplitPlan::Reason::asked_by_engine:
      return "kv_splits says so";
    case SplitPlan::Reason::one_chunk:
      return "the keys are one chunk of " + std::to_string(chunk_keys);
    case SplitPlan::Reason::whole:
      return "the keys of many query rows stay whole";
    case SplitPlan::Reason::fills_device:
      return "auto fills the device's compute units";
    case SplitPlan::Reason::device_is_full:
      return "auto: query tiles alone fill the device, or the keys are too few";
    case SplitPlan::Reason::lists:
      return "the walks of lists are not cut";
    case SplitPlan::Reason::beyond_workspace:
      return "the workspace has no room for the parts of one sequence, or of one row of each";
    case SplitPlan::Reason::beyond_kernels:
      return "more chunks, heads or rows than kernels of split keys count";
    case SplitPlan::Reason::two_lists:
      return "the parts of two lists are merged";
  }
  return {};
}

std::string describe_runs(const SplitPlan& plan, std::uint64_t chunk_keys, std::uint32_t batch) {
  std::string text = std::to_string(plan.runs);
  if (!plan.parts()) return text;
  if (plan.second_runs != 0) text += " and, of the second list, " + std::to_string(plan.second_runs);
  text += ", each up to " + std::to_string(plan.run_chunks) + (plan.run_chunks == 1 ? " chunk of " : " chunks of ") +
          std::to_string(chunk_keys) + " keys, " + std::to_string(plan.workspace_bytes) + " bytes of workspace";
  if (const std::uint32_t rounds = plan.rounds(batch); rounds > 1)
    text += " for " + std::to_string(plan.sequences_a_round) + " sequences at a time, in " + std::to_string(rounds) +
            " rounds";
  return text;
}

families::WorkspaceWords words_of_parts(const SplitPlan& plan) {
  if (plan.second_runs != 0) return words_of_two_lists();
  const std::string count = std::to_string(plan.runs);
  return {.reason = "splits = " + count, .captured = "keys are split (" + count + " runs)", .instead = "fewer splits"};
}

}  // namespace wavejit::attention
