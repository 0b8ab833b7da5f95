// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/call/problem/splits.h"

#include <algorithm>

#include "templates/attention_forward/call/combine/parameters.h"
#include "templates/attention_forward/call/parameters.h"
#include "templates/families/call/refusal.h"

namespace wavejit::attention_forward {
namespace {

using Reason = SplitPlan::Reason;

// A guess: workgroups a compute unit that keep it busy, and chunks that are worth a run of their own.
constexpr std::uint64_t workgroups_per_compute_unit = 2;
constexpr std::uint32_t least_chunks_a_run = 2;

std::uint32_t chunks_of(const AttentionProblem& problem) {
  constexpr std::uint32_t chunk = split_keys;
  return problem.key_length / chunk + (problem.key_length % chunk != 0 ? 1 : 0);
}

// As many runs as fill the device beside what already runs side by side.
SplitPlan fill_device(const AttentionProblem& problem, const targets::Target& target, std::uint32_t chunks) {
  const AttentionShape& shape = problem.shape;
  const auto rows = static_cast<std::uint32_t>(default_tile_queries(
      target, default_pipeline(target, shape.query_rows), shape.query_rows, {shape.head_dim_qk, shape.head_dim_v}));
  const std::uint64_t tiles = problem.query_length / rows + (problem.query_length % rows != 0 ? 1 : 0);
  const std::uint64_t workgroups = std::max<std::uint64_t>(1, tiles * problem.batch * problem.query_heads);
  const std::uint64_t wanted = workgroups_per_compute_unit * static_cast<std::uint64_t>(target.compute_units);
  const std::uint64_t splits = std::min<std::uint64_t>(wanted / workgroups, chunks / least_chunks_a_run);
  if (splits <= 1) return {.reason = Reason::device_is_full};
  return {.splits = static_cast<std::uint32_t>(splits), .reason = Reason::fills_device};
}

SplitPlan choose(const AttentionProblem& problem, const targets::Target& target,
                 std::optional<std::int32_t> kv_splits) {
  const std::uint32_t chunks = chunks_of(problem);
  if (problem.splits > 0) {
    if (problem.splits > 1 && chunks <= 1) return {.reason = Reason::one_chunk};
    return {.splits = std::min(problem.splits, std::max(chunks, 1U)), .reason = Reason::asked_by_call};
  }
  if (chunks <= 1) return {.reason = Reason::one_chunk};
  if (kv_splits)
    return {.splits = std::min(static_cast<std::uint32_t>(*kv_splits), chunks), .reason = Reason::asked_by_engine};
  return problem.any_bits ? fill_device(problem, target, chunks) : SplitPlan{.reason = Reason::keeps_bits};
}

[[gnu::cold, gnu::noinline]] Failure too_many(const AttentionProblem& problem, std::uint32_t splits,
                                              std::uint64_t most) {
  return refusal::bad(WAVEJIT_INVALID_ARGUMENT, "splits",
                      std::to_string(splits) + " over " + std::to_string(problem.key_length) + " keys and " +
                          std::to_string(problem.query_heads) + " query heads",
                      refusal::up_to("1", static_cast<std::int64_t>(most)));
}

[[gnu::cold, gnu::noinline]] Failure beyond_64_bits(std::uint32_t splits) {
  return refusal::bad(WAVEJIT_INVALID_ARGUMENT, "splits", std::to_string(splits),
                      "fewer: the workspace would have more than 2^64 bytes");
}

}  // namespace

Result<SplitPlan> plan_splits(const AttentionProblem& problem, const targets::Target& target,
                              std::optional<std::int32_t> kv_splits) {
  SplitPlan plan = choose(problem, target, kv_splits);
  if (plan.splits == 1) return plan;
  // Kernels divide by multiplication (emit/split.cpp): exact while heads · splits · heads < 2³².
  const std::uint64_t heads = problem.query_heads;
  const std::uint64_t most = std::min<std::uint64_t>(attention_combine::max_splits, 0xFFFFFFFF / (heads * heads));
  if (plan.splits > most) [[unlikely]]
    return refusal::refuse(too_many(problem, plan.splits, most));
  const auto bytes =
      attention_combine::workspace_bytes(problem.query_rows, heads, plan.splits, problem.shape.head_dim_v);
  if (!bytes) [[unlikely]]
    return refusal::refuse(beyond_64_bits(plan.splits));
  plan.workspace_bytes = *bytes;
  return plan;
}

std::string describe(const SplitPlan& plan, const AttentionProblem& problem) {
  const auto reason = [&]() -> std::string {
    switch (plan.reason) {
      case Reason::asked_by_call:
        return "the call says so";
      case Reason::asked_by_engine:
        return "kv_splits says so";
      case Reason::one_chunk:
        return "the keys are one chunk of " + std::to_string(split_keys);
      case Reason::keeps_bits:
        return "auto keeps results the same in any batch; splits=<n> or invariance=none cut the keys";
      case Reason::fills_device:
        return "auto fills the device's compute units (invariance=none)";
      case Reason::device_is_full:
        return "auto: query tiles alone fill the device, or the keys are too few (invariance=none)";
    }
    return {};
  };
  if (plan.splits == 1) return "1: " + reason();
  const std::uint32_t chunks = chunks_of(problem);
  const std::uint32_t run = (chunks + plan.splits - 1) / plan.splits;
  return std::to_string(plan.splits) + ", each up to " + std::to_string(run) +
         (run == 1 ? " chunk of " : " chunks of ") + std::to_string(split_keys) + " keys, " +
         std::to_string(plan.workspace_bytes) + " bytes of workspace: " + reason();
}

}  // namespace wavejit::attention_forward
