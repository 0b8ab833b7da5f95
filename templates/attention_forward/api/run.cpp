// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/api/run.h"

#include <cstring>
#include <utility>

#include "runtime/engine.h"
#include "templates/attention_forward/call/problem/call.h"

namespace wavejit::attention_forward {

Result<void> run(runtime::Engine& engine, const wavejit_attention_forward_arguments* arguments,
                 hip_abi::hipStream_t stream) {
  // A caller compiled against an earlier version: what its struct does not have, it does not ask for.
  constexpr std::size_t earlier = offsetof(wavejit_attention_forward_arguments, window_left);
  if (arguments != nullptr && arguments->size == earlier) [[unlikely]] {
    wavejit_attention_forward_arguments grown = {};
    std::memcpy(&grown, arguments, earlier);
    grown.size = sizeof grown;
    return run(engine, &grown, stream);
  }
  const Result<AttentionProblem> problem = check_attention_forward(arguments);
  if (!problem) return std::unexpected(problem.error());
  const Result<SplitPlan> splits = plan_splits(*problem, engine.target_row(), engine.toggles().kv_splits);
  if (!splits) return std::unexpected(splits.error());
  if (splits->splits != 1 && arguments->workspace != nullptr) [[unlikely]] {
    if (auto workspace = check_workspace(*arguments, splits->workspace_bytes); !workspace) return workspace;
  }
  AttentionCall call(*arguments, *problem, *splits, engine.target_row(), engine.toggles());
  return engine.run(call, stream);
}

Result<std::size_t> workspace_of(const runtime::Engine& engine, const wavejit_attention_forward_arguments* arguments) {
  const Result<AttentionProblem> problem = check_attention_forward(arguments);
  if (!problem) return std::unexpected(problem.error());
  const Result<SplitPlan> splits = plan_splits(*problem, engine.target_row(), engine.toggles().kv_splits);
  if (!splits) return std::unexpected(splits.error());
  AttentionCall call(*arguments, *problem, *splits, engine.target_row(), engine.toggles());
  call.workspace = nullptr;  // whoever asks for the size has none yet
  if (auto room = engine.check_room(call); !room) return std::unexpected(std::move(room.error()));
  return splits->workspace_bytes;
}

}  // namespace wavejit::attention_forward
