// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Lists of keys, one for each query: this family's call as attention/call/key_lists.h sees it, and what lists leave of
// a problem.
#pragma once

#include "templates/attention/call/second_list.h"
#include "templates/attention_forward/call/problem.h"

namespace wavejit::attention_forward {

inline attention::KeyListCall key_lists_of(const wavejit_attention_forward_arguments& call) {
  return {.key_indices = call.key_indices,
          .key_counts = call.key_counts,
          .top_k = call.top_k,
          .key_indices_row_stride = call.key_indices_row_stride,
          .key_slots = call.key_slots,
          .key_list_heads = call.key_list_heads,
          .block_table = call.block_table,
          .query_starts = call.query_starts,
          .key_starts = call.key_starts,
          .key_lengths = call.key_lengths,
          .mask = call.mask,
          .k = call.k,
          .other = call.v};
}
inline bool names_slots(const wavejit_attention_forward_arguments& call) {
  return call.key_indices != nullptr && call.key_slots != 0;
}

// The second list, as if it were a call's only one.
inline attention::KeyListCall second_list_of(const wavejit_attention_forward_arguments& call) {
  return attention::second_list_of(key_lists_of(call), call.second_indices, call.second_counts, call.second_top_k,
                                   call.second_indices_row_stride, call.second_k, call.second_v);
}
// Whether any of their fields says something. Hot: most calls have neither list.
inline bool says_of_key_lists(const wavejit_attention_forward_arguments& call) {
  const auto bits = [](const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); };
  return (bits(call.key_indices) | bits(call.key_counts) | bits(call.second_indices) | bits(call.second_counts) |
          bits(call.second_k.data) | bits(call.second_v.data)) != 0 ||
         (call.top_k | call.key_indices_row_stride | call.key_slots | call.key_list_heads | call.second_top_k |
          call.second_indices_row_stride) != 0;
}
// Fields by themselves, before sizes are looked at.
Result<void> check_key_list_fields(const wavejit_attention_forward_arguments& call);

// A tile of the heads that share a kv head, of one query.
inline RowPlan rows_of_key_lists(std::uint32_t group) { return {.rows = query_rows(group), .packed_heads = true}; }

// Takes the lists into a problem in which all else stands.
Result<void> take_key_lists(const wavejit_attention_forward_arguments& call, AttentionProblem& problem);

}  // namespace wavejit::attention_forward
