// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Into how many runs of whole chunks the keys of each sequence are cut, and how many rows a workgroup has: a pure
// function of the problem and the target. Neither shows in a bit. docs/split-keys.md says what a user may rely on.
#pragma once

#include <cstdint>
#include <string>

#include "boards/board.h"
#include "templates/attention/call/split_call.h"
#include "templates/attention/call/split_plan.h"
#include "templates/attention_latent/call/problem.h"

namespace wavejit::attention_latent {

using attention::any_reach;

struct SplitPlan : attention::SplitPlan {
  Rows rows = Rows::r32;  // of a workgroup
  bool operator==(const SplitPlan&) const = default;
};
// `reach`: bytes of the caller's workspace; any_reach: the engine's own.
SplitPlan plan_splits(const LatentProblem& problem, const boards::Board& board, std::uint64_t reach = any_reach);
// Counters of arrivals that a launch needs; 0: nobody counts.
std::uint32_t arrivals_of(const LatentProblem& problem, const SplitPlan& plan);
// The kernels of such a call.
LatentShape shape_of(const LatentProblem& problem, const SplitPlan& plan);
std::string describe(const SplitPlan& plan, const LatentProblem& problem, const boards::Board& board);

using CallPlan = attention::CallPlanOf<LatentProblem, SplitPlan>;
CallPlan plan_call(const LatentProblem& problem, const boards::Board& board, std::uint64_t reach);

}  // namespace wavejit::attention_latent
