// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How many runs a call's keys are cut into, and what that costs: a pure function of the problem, the target and what
// was asked for. docs/split-keys.md says what a user may rely on.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "boards/board.h"
#include "families/kernel/toggles.h"
#include "templates/attention_forward/call/problem.h"

namespace wavejit::attention_forward {

struct SplitPlan {
  enum class Reason : std::uint8_t {
    asked_by_call,
    asked_by_engine,   // kv_splits
    one_chunk,         // there is nothing to cut
    whole,             // auto: more than a few query rows
    fills_device,      // auto
    device_is_full,    // auto: cutting would not help
    beyond_kernels,    // more chunks, heads or rows than kernels count
    lists,             // walks of lists are not cut
    beyond_workspace,  // there is one, and it has no room for the parts of one sequence
    two_lists,         // each walked by a launch of its own: parts are merged, however many splits there are
  };
  std::uint32_t splits = 1;           // 1: the kernel that does not split, unless there is a second list
  std::uint32_t second_splits = 0;    // of a second list; 0: there is none
  std::uint64_t workspace_bytes = 0;  // of one round; of lists: their walks
  // Sequences that run at once; each round reuses the workspace of the one before. 0: all sequences in one round.
  std::uint32_t sequences_a_round = 0;
  Reason reason = Reason::whole;
  // Not 0: sequences of up to `few_rows` query rows have a kernel of their own (mix.h), and only its keys are split.
  std::uint32_t few_rows = 0;
  bool merged = false;  // in the launch that leaves the parts, by the last workgroup to arrive

  bool operator==(const SplitPlan&) const = default;
  // Kernels leave parts, which another one merges.
  bool parts() const { return splits != 1 || second_splits != 0; }
  // There are as good kernels that leave none.
  bool may_go_whole() const { return splits != 1 && second_splits == 0; }
};

inline constexpr std::uint64_t any_reach = ~std::uint64_t{0};

// A number of splits is a hint, since it shows in no bit. More than the longest sequence has chunks are not launched,
// and where kernels cannot count so far nothing is cut. Who pins a pipeline, or asks for several splits, has one kernel
// for all sequences.
//
// `reach`: bytes of a workspace that is there. Where it is smaller than what all sequences need, they go in rounds;
// without room for one of them `auto` and kv_splits leave the keys whole, and a call that says how many splits keeps
// its plan, whose workspace is then too small. Without one it is most_workspace: what an engine allocates on its own,
// or asks a caller for.
inline constexpr std::uint64_t most_workspace = std::uint64_t{256} << 20;
// Where the parts of packed queries stand. By the row of the whole tensor, which only the device knows of a sequence:
// they need room for all at once. Where that is more than most_workspace, sequences that have few rows have the kernel
// of few rows (row_limits.h), whose parts stand by the sequence, and go in rounds. No workspace of a caller's decides
// it: lines of text do not tell one, and lead to the same kernels.
bool has_parts_by_sequence(const AttentionProblem& problem);
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

// "4, each up to 8 chunks of 1024 keys, 17301504 bytes of workspace: the call says so; merged in …" `shape`: what
// kernel_shape says.
std::string describe(const SplitPlan& plan, const AttentionProblem& problem, const AttentionShape& shape,
                     const boards::Board& target);
// A plan with few_rows in words: "2: sequences of 1 to 4 query rows by the kernel of few rows, …"
std::string describe_walks(const SplitPlan& plan);

}  // namespace wavejit::attention_forward
