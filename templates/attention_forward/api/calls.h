// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The calls of attention_forward on an engine (runtime/call/call_functions.h).
#pragma once

#include "runtime/call/call_functions.h"
#include "templates/attention/call/tensors.h"
#include "templates/attention_forward/api/moving_pointers.h"
#include "templates/attention_forward/call/call.h"
#include "templates/attention_forward/call/walks/lists.h"

namespace wavejit::attention_forward {

struct Calls {
  using Arguments = wavejit_attention_forward_arguments;
  using Call = AttentionCall;

  static Result<CallPlan> plan(const runtime::Engine& engine, const Arguments* arguments) {
    const Result<AttentionProblem> problem = check_attention_forward(arguments);
    if (!problem) return std::unexpected(problem.error());
    return plan_call(*problem, engine.target_row(), engine.toggles(), attention::reach_of(arguments->split));
  }
  // Others depend on more addresses.
  static bool is_remembered(const Arguments& call) {
    return call.modifiers.bias.data == nullptr && call.modifiers.bool_mask.data == nullptr && !has_lists(call) &&
           call.key_list.indices == nullptr && call.pages.page_layout == WAVEJIT_PAGES_OF_ROWS;
  }
  static std::uint64_t bytes_of(const wavejit_tensor& tensor) { return attention::touched_bytes(tensor); }
};

}  // namespace wavejit::attention_forward
