// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A call of this family as the checks of any attention see it (templates/attention/call).
#pragma once

#include "families/call/family.h"
#include "templates/attention/call/paging.h"
#include "templates/attention/call/sequences.h"
#include "templates/attention_forward/call/problem.h"

namespace wavejit::attention_forward {

inline bool is_paged(const wavejit_attention_forward_arguments& call) { return call.pages.block_table != nullptr; }

// WAVEJIT_CHECK_LENGTHS: what device memory says (templates/attention/call/device_lengths.h).
Result<void> check_device_lengths(families::DeviceMemory& memory, const AttentionProblem& problem,
                                  const wavejit_attention_forward_arguments& call);

// Scales of a cache of 8 bits, and that no other call has them. Outputs stand elsewhere.
Result<void> check_cache_scales(const wavejit_attention_forward_arguments& call, const AttentionProblem& problem);

// Scales of integers; fills what the shape says of them.
Result<void> check_integer_scales(const wavejit_attention_forward_arguments& call, AttentionProblem& problem);

// The splits, the flags and what else is this family's own. Fills the problem's fields; the shape stands in it already.
Result<void> check_choices(const wavejit_attention_forward_arguments& call, AttentionProblem& problem);

}  // namespace wavejit::attention_forward
