// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Lists of keys, one for each query: this family's call as attention/call/key_lists.h sees it.
#pragma once

#include "templates/attention/call/second_list.h"
#include "templates/attention_latent/call/problem.h"

namespace wavejit::attention_latent {

using attention::max_top_k;

inline attention::KeyListCall lists_of(const wavejit_attention_latent_arguments& call) {
  return attention::first_list_of(call, call.k_rope);
}
// The second list, as if it were a call's only one.
inline attention::KeyListCall second_list_of(const wavejit_attention_latent_arguments& call) {
  return attention::second_list_of(call, call.k_rope);
}
inline bool has_lists(const wavejit_attention_latent_arguments& call) { return call.key_list.indices != nullptr; }
inline bool has_second_list(const wavejit_attention_latent_arguments& call) {
  return call.second_list.indices != nullptr;
}
inline bool names_slots(const wavejit_attention_latent_arguments& call) {
  return attention::names_slots(call.key_list);
}
// Whether any of their fields says something.
inline bool says_of_lists(const wavejit_attention_latent_arguments& call) {
  return attention::says_of_lists(call.key_list, call.second_list) || call.second_k.data != nullptr;
}
// Both lists' fields, before sizes are looked at.
Result<void> check_list_fields(const wavejit_attention_latent_arguments& call);

// Words and numbers of a problem whose sizes stand in it.
Result<void> take_lists(const wavejit_attention_latent_arguments& call, LatentProblem& problem);

}  // namespace wavejit::attention_latent
