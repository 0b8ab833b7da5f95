// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// attention_forward on an engine: what its C functions do.
#pragma once

#include <cstddef>

#include "runtime/call/engine.h"
#include "templates/attention_forward/call/call.h"

namespace wavejit::attention_forward {

// Kernels of few rows beside others split as far as a workspace reaches: callers who bring one may have meant it for
// calls of nothing else.
SplitPlan plan_of(const runtime::Engine& engine, const wavejit_attention_forward_arguments& call,
                  const AttentionProblem& problem);
// The workspace that a call brings is large enough for its splits.
Result<void> check_given_workspace(const AttentionCall& call, const SplitPlan& splits);

// As runtime/call/call_functions.h wants it.
struct Calls {
  using Arguments = wavejit_attention_forward_arguments;

  // `ask(call)` of the checked call; nothing is launched.
  template <typename Answer, typename Ask>
  static Result<Answer> asked(const runtime::Engine& engine, const Arguments* arguments, Ask ask) {
    const Result<AttentionProblem> problem = check_attention_forward(arguments);
    if (!problem) return std::unexpected(problem.error());
    const SplitPlan splits = plan_of(engine, *arguments, *problem);
    AttentionCall call(*arguments, *problem, splits, engine.target_row(), engine.toggles());
    if (auto workspace = check_given_workspace(call, splits); !workspace) return std::unexpected(workspace.error());
    return ask(call);
  }
  static Result<void> run(runtime::Engine& engine, const Arguments* arguments, hip_abi::hipStream_t stream);
  static Result<void> is_ready(const runtime::Engine& engine, const Arguments* arguments);
  static Result<void> prepare(runtime::Engine& engine, const Arguments* arguments);
  static Result<std::size_t> workspace(const runtime::Engine& engine, const Arguments* arguments);
};

}  // namespace wavejit::attention_forward
