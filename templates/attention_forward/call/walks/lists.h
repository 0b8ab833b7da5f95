// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Lists of key blocks of a call: what is checked of them, and the walks that are made of them
// (kernel/block_lists/walks.h). docs/sparse.md says what a user may rely on.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "families/call/family.h"
#include "templates/attention_forward/call/problem.h"
#include "templates/attention_forward/call/walks/bool_mask.h"
#include "templates/attention_forward/kernel/walks/block_lists/arguments.h"
#include "templates/attention_forward/kernel/walks/list_arguments.h"

namespace wavejit::attention_forward {

inline bool has_lists(const wavejit_attention_forward_arguments& call) {
  return call.blocks.list_indices != nullptr || call.blocks.full_indices != nullptr;
}

// Fills the problem's lists and its shape's word; both are none without lists. The sizes stand in it already.
Result<void> check_lists(const wavejit_attention_forward_arguments& call, AttentionProblem& problem);
// WAVEJIT_CHECK_LENGTHS: counts, starts and entries, as device memory has them.
Result<void> check_device_lists(families::DeviceMemory& memory, const AttentionProblem& problem,
                                const wavejit_attention_forward_arguments& call);

// How a workgroup's rows go by them.
RowPlan rows_of_lists(const BlockLists& lists, std::uint64_t query_length);

// Room for the walks of any kernel that the problem may have. Nothing if they have more entries than kernels count.
std::optional<std::uint64_t> walk_bytes(const AttentionProblem& problem);

// The walks of one kernel, in `memory`.
struct WalkPlan {
  attention_block_lists::Arguments make;
  ListArguments walk;
  std::optional<MaskPlan> mask;  // of a bool mask or a bias
};
WalkPlan plan_walks(const AttentionProblem& problem, const wavejit_attention_forward_arguments& call,
                    const ForwardKernel& spec, const Arguments& arguments, const void* memory);

// "blocks of 64 rows by 64 keys …" for explain.
std::string describe_lists(const AttentionProblem& problem);

}  // namespace wavejit::attention_forward
