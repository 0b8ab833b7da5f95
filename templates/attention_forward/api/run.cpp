// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/api/run.h"

#include <utility>

#include "runtime/call/engine.h"
#include "templates/attention_forward/api/known_plans.h"
#include "templates/attention_forward/call/call.h"

namespace wavejit::attention_forward {

namespace {

SplitPlan plan_of(const runtime::Engine& engine, const AttentionProblem& problem, std::uint64_t reach = any_reach) {
  return plan_splits(problem, engine.target_row(), engine.toggles(), reach);
}

}  // namespace

SplitPlan plan_of(const runtime::Engine& engine, const wavejit_attention_forward_arguments& call,
                  const AttentionProblem& problem) {
  if (call.split.workspace == nullptr) [[likely]]
    return plan_of(engine, problem);
  return plan_of(engine, problem, call.split.workspace_bytes);
}

Result<void> check_given_workspace(const AttentionCall& call, const SplitPlan& splits) {
  const wavejit_attention_forward_arguments& arguments = call.arguments();
  if (splits.workspace_bytes == 0 || arguments.split.workspace == nullptr) return {};
  return check_workspace(arguments, call.problem().batch, splits.workspace_bytes);
}

namespace {

// A graph may be replayed on any stream, beside calls that borrow the engine's workspace. Without one of its own a
// call leaves its keys whole: slower, and the same bits.
[[gnu::cold, gnu::noinline]] Result<void> run_whole(runtime::Engine& engine,
                                                    const wavejit_attention_forward_arguments& arguments,
                                                    hip_abi::hipStream_t stream) {
  wavejit_attention_forward_arguments whole = arguments;
  whole.split.splits = 1;
  return Calls::run(engine, &whole, stream);
}

// The same call with its keys whole, as `ask` sees it: how many splits there are is a hint.
template <typename Answer, typename Ask>
Result<Answer> asked_whole(const runtime::Engine& engine, const wavejit_attention_forward_arguments& arguments,
                           Ask ask) {
  wavejit_attention_forward_arguments whole = arguments;
  whole.split.splits = 1;
  const Result<AttentionProblem> problem = check_attention_forward(&whole);
  if (!problem) return std::unexpected(problem.error());
  const SplitPlan splits = plan_of(engine, whole, *problem);
  AttentionCall call(whole, *problem, splits, engine.target_row(), engine.toggles());
  return ask(call);
}

// A capture has no room for kernels that are missing: those of two launches, which it needs where no counters are left,
// are made behind the first call that needs none of them.
void load_two_launches_behind(runtime::Engine& engine, const AttentionCall& call) {
  AttentionProblem problem = call.problem();
  problem.launches = attention::Launches::two;
  const SplitPlan splits = plan_of(engine, call.arguments(), problem);
  engine.load_behind(AttentionCall(call.arguments(), problem, splits, engine.target_row(), engine.toggles()));
}

// What a capture may need of a call that splits keys, when nothing can be loaded.
Result<void> load_for_captures_behind(runtime::Engine& engine, const AttentionCall& call, const SplitPlan& splits) {
  if (splits.merged && call.problem().launches == attention::Launches::planned) load_two_launches_behind(engine, call);
  if (splits.reason != SplitPlan::Reason::fills_device) return {};
  return asked_whole<void>(engine, call.arguments(), [&](const AttentionCall& whole) -> Result<void> {
    engine.load_behind(whole);
    return {};
  });
}

// A call that splits keys, and whose kernels are not loaded. Where none may be loaded now, the kernels that leave the
// keys whole are as good, if they are there. Else the call's own come first, and what a capture may need one day, when
// nothing can be loaded, behind it.
[[gnu::cold, gnu::noinline]] Result<void> run_cold(runtime::Engine& engine, AttentionCall& call,
                                                   const SplitPlan& splits, hip_abi::hipStream_t stream) {
  const wavejit_attention_forward_arguments& arguments = call.arguments();
  if (!engine.may_load(call, stream)) {
    const Result<bool> whole_is_loaded =
        asked_whole<bool>(engine, arguments, [&](const AttentionCall& whole) { return engine.is_loaded(whole); });
    if (whole_is_loaded && *whole_is_loaded) return run_whole(engine, arguments, stream);
  }
  if (auto done = engine.run(call, stream); !done) return done;
  return load_for_captures_behind(engine, call, splits);
}

}  // namespace

namespace {

// A call that is captured, and whose parts are merged in one launch, has counters of its own from then on; where there
// are none, two launches merge.
[[gnu::cold, gnu::noinline]] Result<void> run_captured(runtime::Engine& engine,
                                                       const wavejit_attention_forward_arguments& arguments,
                                                       const AttentionProblem& merged, const SplitPlan& splits,
                                                       hip_abi::hipStream_t stream) {
  if (void* counters = engine.captured_counters(arrivals_of(merged, splits)); counters != nullptr) {
    AttentionCall call(arguments, merged, splits, engine.target_row(), engine.toggles());
    call.arrival_counters = counters;
    return engine.run(call, stream);
  }
  AttentionProblem problem = merged;
  problem.launches = attention::Launches::two;
  const SplitPlan of_two = plan_of(engine, arguments, problem);
  AttentionCall call(arguments, problem, of_two, engine.target_row(), engine.toggles());
  return engine.run(call, stream);
}

}  // namespace

namespace {

// `plan` is the caller's own: what a thread knows may go while hooks and loggers run.
Result<void> run_planned(runtime::Engine& engine, const wavejit_attention_forward_arguments& arguments,
                         const CallPlan& plan, hip_abi::hipStream_t stream) {
  const SplitPlan& splits = plan.splits;
  if (splits.workspace_bytes != 0) [[unlikely]] {
    if (splits.may_go_whole() && arguments.split.workspace == nullptr && engine.is_capturing(stream))
      return run_whole(engine, arguments, stream);
    if (arguments.split.workspace != nullptr) {
      if (auto workspace = check_workspace(arguments, plan.problem.batch, splits.workspace_bytes); !workspace)
        return workspace;
      if (splits.merged && engine.is_capturing(stream))
        return run_captured(engine, arguments, plan.problem, splits, stream);
    }
  }
  AttentionCall call(arguments, plan.problem, splits, plan.code, engine.target_row(), engine.toggles());
  if (splits.may_go_whole() && !engine.is_loaded(call)) [[unlikely]]
    return run_cold(engine, call, splits, stream);
  return engine.run(call, stream);
}

// A call that the thread does not know.
[[gnu::noinline]] Result<void> run_checked(runtime::Engine& engine,
                                           const wavejit_attention_forward_arguments* arguments,
                                           hip_abi::hipStream_t stream) {
  const Result<AttentionProblem> problem = check_attention_forward(arguments);
  if (!problem) return std::unexpected(problem.error());
  CallPlan plan = {.problem = *problem, .splits = plan_of(engine, *arguments, *problem)};
  plan.code = kernel_shape(plan.problem, plan.splits, engine.target_row(), engine.toggles()).code();
  keep_plan(engine, *arguments, plan);
  return run_planned(engine, *arguments, plan, stream);
}

}  // namespace

Result<void> Calls::run(runtime::Engine& engine, const Arguments* arguments, hip_abi::hipStream_t stream) {
  // The size first: a struct of another has no more than that.
  if (arguments != nullptr && arguments->head.size == sizeof *arguments) [[likely]] {
    if (const CallPlan* known = known_plan(engine, *arguments); known != nullptr) [[likely]] {
      const CallPlan plan = *known;
      return run_planned(engine, *arguments, plan, stream);
    }
  }
  return run_checked(engine, arguments, stream);
}

Result<void> Calls::is_ready(const runtime::Engine& engine, const Arguments* arguments) {
  const Result<AttentionProblem> problem = check_attention_forward(arguments);
  if (!problem) return std::unexpected(problem.error());
  const SplitPlan splits = plan_of(engine, *arguments, *problem);
  AttentionCall call(*arguments, *problem, splits, engine.target_row(), engine.toggles());
  if (auto workspace = check_given_workspace(call, splits); !workspace) return workspace;
  Result<void> ready = engine.is_ready(call);
  if (ready || !splits.may_go_whole() || ready.error().status != WAVEJIT_NOT_READY) return ready;
  // As run_cold.
  if (asked_whole<void>(engine, *arguments, [&](AttentionCall& whole) { return engine.is_ready(whole); })) return {};
  return ready;
}

Result<void> Calls::prepare(runtime::Engine& engine, const Arguments* arguments) {
  const Result<AttentionProblem> problem = check_attention_forward(arguments);
  if (!problem) return std::unexpected(problem.error());
  const SplitPlan splits = plan_of(engine, *arguments, *problem);
  AttentionCall call(*arguments, *problem, splits, engine.target_row(), engine.toggles());
  if (auto workspace = check_given_workspace(call, splits); !workspace) return workspace;
  if (auto loaded = engine.load(call); !loaded) return loaded;
  // As behind a first call: no later one is cold.
  return splits.may_go_whole() ? load_for_captures_behind(engine, call, splits) : Result<void>();
}

Result<std::size_t> Calls::workspace(const runtime::Engine& engine, const Arguments* arguments) {
  const Result<AttentionProblem> problem = check_attention_forward(arguments);
  if (!problem) return std::unexpected(problem.error());
  const SplitPlan splits = plan_of(engine, *arguments, *problem);  // the call refers to it
  AttentionCall call(*arguments, *problem, splits, engine.target_row(), engine.toggles());
  call.workspace = nullptr;  // whoever asks for the size has none yet
  if (auto supported = engine.supports(call); !supported) return std::unexpected(std::move(supported.error()));
  return plan_of(engine, *problem).workspace_bytes;
}

}  // namespace wavejit::attention_forward
