// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Lists of keys, one for each query: this family's call as attention/call/key_lists.h sees it, and what lists leave of
// a problem.
#pragma once

#include <optional>

#include "templates/attention/call/second_list.h"
#include "templates/attention_forward/call/problem.h"

namespace wavejit::attention_forward {

inline attention::KeyListCall key_lists_of(const wavejit_attention_forward_arguments& call) {
  return attention::first_list_of(call, call.v);
}
// The second list, as if it were a call's only one.
inline attention::KeyListCall second_list_of(const wavejit_attention_forward_arguments& call) {
  return attention::second_list_of(call, call.second_v);
}
inline bool names_slots(const wavejit_attention_forward_arguments& call) {
  return attention::names_slots(call.key_list);
}
// Whether any of their fields says something.
inline bool says_of_key_lists(const wavejit_attention_forward_arguments& call) {
  return attention::says_of_lists(call.key_list, call.second_list) || call.second_k.data != nullptr ||
         call.second_v.data != nullptr;
}
// The word that goes with no list of keys; nothing: there is none.
std::optional<BesideWord> beside_key_lists(const AttentionShape& shape);

// Fields by themselves, before sizes are looked at.
Result<void> check_key_list_fields(const wavejit_attention_forward_arguments& call);

// A tile of the heads that share a kv head, of one query.
inline RowPlan rows_of_key_lists(std::uint32_t group) { return {.rows = query_rows(group), .packed_heads = true}; }

// Takes the lists into a problem in which all else stands.
Result<void> take_key_lists(const wavejit_attention_forward_arguments& call, AttentionProblem& problem);

}  // namespace wavejit::attention_forward
