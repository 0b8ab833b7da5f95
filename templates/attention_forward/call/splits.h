// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How many runs a call's keys are cut into, and what that costs: a pure function of the problem, the target and what
// was asked for. docs/split-keys.md says what a user may rely on.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "boards/board.h"
#include "families/kernel/toggles.h"
#include "templates/attention/call/split_call.h"
#include "templates/attention/call/split_plan.h"
#include "templates/attention_forward/call/problem.h"

namespace wavejit::attention_forward {

using attention::any_reach;
using attention::most_workspace;

struct SplitPlan : attention::SplitPlan {
  // Not 0: sequences of up to `few_rows` query rows have a kernel of their own (mix.h), and only its keys are split.
  std::uint32_t few_rows = 0;

  bool operator==(const SplitPlan&) const = default;
};

// Where the parts of packed queries stand. By the row of the whole tensor, which only the device knows of a sequence:
// they need room for all at once. Where that is more than most_workspace, sequences that have few rows have the kernel
// of few rows (row_limits.h), whose parts stand by the sequence, and go in rounds. No workspace of a caller's decides
// it: lines of text do not tell one, and lead to the same kernels.
bool has_parts_by_sequence(const AttentionProblem& problem);

// A number of splits is a hint, since it shows in no bit. More than the longest sequence has chunks are not launched,
// and where kernels cannot count so far nothing is cut. Who pins a pipeline, or asks for several splits, has one kernel
// for all sequences.
//
// `reach`: bytes of a workspace that is there. Where it is smaller than what all sequences need, they go in rounds;
// without room for one of them `auto` and kv_splits leave the keys whole, and a call that says how many splits keeps
// its plan, whose workspace is then too small. Without one it is most_workspace: what an engine allocates on its own,
// or asks a caller for.
SplitPlan plan_splits(const AttentionProblem& problem, const boards::Board& target,
                      const families::Toggles& toggles = {}, std::uint64_t reach = any_reach);

// Chunks of both lists of a query, and how many kernels can merge.
std::uint64_t parts_of_lists(const AttentionProblem& problem);
std::uint64_t most_parts_of_lists(const AttentionProblem& problem);

// Counters of arrivals for every wave of every tile of rows of one round, whatever tiles the route chooses; 0: the plan
// merges in a launch of its own.
std::uint32_t arrivals_of(const AttentionProblem& problem, const SplitPlan& plan);

// What the kernels that walk the keys are asked for.
AttentionShape kernel_shape(const AttentionProblem& problem, const SplitPlan& plan, const boards::Board& target,
                            const families::Toggles& toggles = {});

using CallPlan = attention::CallPlanOf<AttentionProblem, SplitPlan>;
CallPlan plan_call(const AttentionProblem& problem, const boards::Board& target, const families::Toggles& toggles,
                   std::uint64_t reach);

// "4, each up to 8 chunks of 1024 keys, 17301504 bytes of workspace: the call says so; merged in …" `shape`: what
// kernel_shape says.
std::string describe(const SplitPlan& plan, const AttentionProblem& problem, const AttentionShape& shape,
                     const boards::Board& target);
// A plan with few_rows in words: "2: sequences of 1 to 4 query rows by the kernel of few rows, …"
std::string describe_walks(const SplitPlan& plan);

}  // namespace wavejit::attention_forward
