// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/api/run.h"

#include <cstring>
#include <utility>

#include "runtime/engine.h"
#include "templates/attention_forward/call/problem/call.h"

namespace wavejit::attention_forward {

namespace {

// A caller compiled against an earlier version: what its struct does not have, it does not ask for.
constexpr std::size_t earlier_bytes = offsetof(wavejit_attention_forward_arguments, window_left);

bool is_earlier(const wavejit_attention_forward_arguments* arguments) {
  return arguments != nullptr && arguments->size == earlier_bytes;
}

wavejit_attention_forward_arguments grown(const wavejit_attention_forward_arguments& arguments) {
  wavejit_attention_forward_arguments all = {};
  std::memcpy(&all, &arguments, earlier_bytes);
  all.size = sizeof all;
  return all;
}

// `ask(call, splits)` of the checked call; nothing is launched.
template <typename Answer, typename Ask>
Result<Answer> asked(const runtime::Engine& engine, const wavejit_attention_forward_arguments* arguments, Ask ask) {
  if (is_earlier(arguments)) {
    const wavejit_attention_forward_arguments all = grown(*arguments);
    return asked<Answer>(engine, &all, ask);
  }
  const Result<AttentionProblem> problem = check_attention_forward(arguments);
  if (!problem) return std::unexpected(problem.error());
  const Result<SplitPlan> splits = plan_splits(*problem, engine.target_row(), engine.toggles().kv_splits);
  if (!splits) return std::unexpected(splits.error());
  AttentionCall call(*arguments, *problem, *splits, engine.target_row(), engine.toggles());
  return ask(call, *splits);
}

Result<void> check_given_workspace(const wavejit_attention_forward_arguments& arguments, const SplitPlan& splits) {
  if (splits.splits == 1 || arguments.workspace == nullptr) return {};
  return check_workspace(arguments, splits.workspace_bytes);
}

}  // namespace

Result<void> run(runtime::Engine& engine, const wavejit_attention_forward_arguments* arguments,
                 hip_abi::hipStream_t stream) {
  if (is_earlier(arguments)) [[unlikely]] {
    const wavejit_attention_forward_arguments all = grown(*arguments);
    return run(engine, &all, stream);
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

Result<void> supports(const runtime::Engine& engine, const wavejit_attention_forward_arguments* arguments) {
  return asked<void>(engine, arguments, [&](AttentionCall& call, const SplitPlan& splits) -> Result<void> {
    if (auto workspace = check_given_workspace(call.arguments(), splits); !workspace) return workspace;
    return engine.supports(call);
  });
}

Result<void> is_ready(const runtime::Engine& engine, const wavejit_attention_forward_arguments* arguments) {
  return asked<void>(engine, arguments, [&](AttentionCall& call, const SplitPlan& splits) -> Result<void> {
    if (auto workspace = check_given_workspace(call.arguments(), splits); !workspace) return workspace;
    return engine.is_ready(call);
  });
}

Result<std::string> description_of(const runtime::Engine& engine,
                                   const wavejit_attention_forward_arguments* arguments) {
  return asked<std::string>(engine, arguments,
                            [](const AttentionCall& call, const SplitPlan& /*splits*/) -> Result<std::string> {
                              return call.descriptor(families::Call::Line::whole);
                            });
}

Result<std::size_t> workspace_of(const runtime::Engine& engine, const wavejit_attention_forward_arguments* arguments) {
  return asked<std::size_t>(engine, arguments,
                            [&](AttentionCall& call, const SplitPlan& splits) -> Result<std::size_t> {
                              call.workspace = nullptr;  // whoever asks for the size has none yet
                              if (auto supported = engine.supports(call); !supported)
                                return std::unexpected(std::move(supported.error()));
                              return splits.workspace_bytes;
                            });
}

}  // namespace wavejit::attention_forward
