// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The memory that a call of split keys brings: whether it is large enough, and nobody else's.
#include "templates/attention/call/workspace.h"

#include "templates/attention_forward/call/checks.h"

namespace wavejit::attention_forward {

Result<void> check_workspace_of(const wavejit_attention_forward_arguments& call, const AttentionProblem& problem,
                                std::uint64_t bytes) {
  using attention::Named;
  using attention::NamedNumbers;
  if (call.split.workspace == nullptr || bytes == 0) return {};
  const Named tensors[] = {{"q", &call.q},
                           {"k", &call.k},
                           {"v", &call.v},
                           {"second_k", &call.second_k},
                           {"second_v", &call.second_v},
                           {"o", &call.o},
                           {"lse", &call.lse},
                           {"q_scale", &call.scales.q_scale},
                           {"k_scale", &call.scales.k_scale},
                           {"v_scale", &call.scales.v_scale},
                           {"bias", &call.modifiers.bias},
                           {"alibi", &call.modifiers.alibi},
                           {"sink", &call.modifiers.sink},
                           {"bool_mask", &call.modifiers.bool_mask}};
  // Only the device knows how long lists are.
  const NamedNumbers lists[] = {
      {"list_indices", call.blocks.list_indices, 1}, {"full_indices", call.blocks.full_indices, 1},
      {"list_counts", call.blocks.list_counts, 1},   {"full_counts", call.blocks.full_counts, 1},
      {"list_starts", call.blocks.list_starts, 1},   {"full_starts", call.blocks.full_starts, 1},
      {"o_scale", call.output_scale.o_scale, 1},     {"key_indices", call.key_list.indices, 1},
      {"key_counts", call.key_list.counts, 1},       {"second_indices", call.second_list.indices, 1},
      {"second_counts", call.second_list.counts, 1}};
  return attention::check_workspace(call.split, bytes, tensors,
                                    attention::numbers_of(call.sequences, call.pages, problem.batch), lists);
}

}  // namespace wavejit::attention_forward
