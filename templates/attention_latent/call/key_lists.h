// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Lists of keys, one for each query: this family's call as attention/call/key_lists.h sees it.
#pragma once

#include "templates/attention/call/second_list.h"
#include "templates/attention_latent/call/problem.h"

namespace wavejit::attention_latent {

using attention::max_top_k;

inline attention::KeyListCall lists_of(const wavejit_attention_latent_arguments& call) {
  return {.key_indices = call.key_indices,
          .key_counts = call.key_counts,
          .top_k = call.top_k,
          .key_indices_row_stride = call.key_indices_row_stride,
          .key_slots = call.key_slots,
          .block_table = call.block_table,
          .query_starts = call.query_starts,
          .key_starts = call.key_starts,
          .key_lengths = call.key_lengths,
          .mask = call.mask,
          .k = call.k,
          .other = call.k_rope};
}
inline bool has_lists(const wavejit_attention_latent_arguments& call) { return call.key_indices != nullptr; }
// k is a cache whose slots are named, whatever the sequences are.
inline bool names_slots(const wavejit_attention_latent_arguments& call) {
  return call.key_indices != nullptr && call.key_slots != 0;
}

// The second list, as if it were a call's only one.
inline attention::KeyListCall second_list_of(const wavejit_attention_latent_arguments& call) {
  return attention::second_list_of(lists_of(call), call.second_indices, call.second_counts, call.second_top_k,
                                   call.second_indices_row_stride, call.second_k, call.k_rope);
}
inline bool has_second_list(const wavejit_attention_latent_arguments& call) { return call.second_indices != nullptr; }
// Whether any of their fields says something. Hot: most calls have neither list.
inline bool says_of_lists(const wavejit_attention_latent_arguments& call) {
  const auto bits = [](const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); };
  return (bits(call.key_indices) | bits(call.key_counts) | bits(call.second_indices) | bits(call.second_counts) |
          bits(call.second_k.data)) != 0 ||
         (call.top_k | call.key_indices_row_stride | call.key_slots | call.second_top_k |
          call.second_indices_row_stride) != 0;
}
// Both lists' fields, before sizes are looked at.
Result<void> check_list_fields(const wavejit_attention_latent_arguments& call);

// Words and numbers of a problem whose sizes stand in it.
Result<void> take_lists(const wavejit_attention_latent_arguments& call, LatentProblem& problem);

}  // namespace wavejit::attention_latent
