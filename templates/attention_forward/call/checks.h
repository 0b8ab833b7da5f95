// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A call of this family as the checks of any attention see it (templates/attention/call).
#pragma once

#include "families/call/family.h"
#include "templates/attention/call/paging.h"
#include "templates/attention/call/sequences.h"
#include "templates/attention_forward/call/problem.h"

namespace wavejit::attention_forward {

inline bool is_paged(const wavejit_attention_forward_arguments& call) { return call.block_table != nullptr; }

inline SequenceCall sequences_of(const wavejit_attention_forward_arguments& call) {
  return {.q = call.q,
          .k = call.k,
          .query_starts = call.query_starts,
          .key_starts = call.key_starts,
          .key_lengths = call.key_lengths,
          .first_keys = call.first_keys,
          .sequences = call.sequences,
          .max_query_length = call.max_query_length,
          .max_key_length = call.max_key_length,
          .paged = is_paged(call),
          .names_a_table = call.table_starts != nullptr || call.table_columns != 0 || call.table_row_stride != 0};
}

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
