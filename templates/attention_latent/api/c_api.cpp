// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The calls of attention_latent on an engine.
#include "runtime/call/call_functions.h"
#include "templates/attention_latent/api/known_plans.h"
#include "templates/attention_latent/call/call.h"

namespace wavejit::attention_latent {
namespace {

using runtime::Engine;
using Arguments = wavejit_attention_latent_arguments;

Runs runs_of(const Engine& engine, const Arguments& call, const LatentProblem& problem) {
  return plan_runs(problem, engine.target_row(),
                   call.split.workspace == nullptr ? any_reach : call.split.workspace_bytes);
}

// Every call but one that the thread knows.
[[gnu::noinline]] Result<CallPlan> checked_plan(const Engine& engine, const Arguments* arguments) {
  auto problem = check(arguments);
  if (!problem) return std::unexpected(problem.error());
  take_rows(*problem, engine.target_row(), engine.toggles());
  const Runs runs = runs_of(engine, *arguments, *problem);
  const CallPlan plan = {.problem = *problem, .runs = runs, .code = shape_of(*problem, runs).shape().code};
  keep_plan(engine, *arguments, plan);
  return plan;
}

// The thread's own copy: what it knows may go while hooks and loggers run.
Result<CallPlan> plan_of(const Engine& engine, const Arguments* arguments) {
  if (arguments != nullptr && arguments->head.size == sizeof *arguments) [[likely]] {
    if (const CallPlan* known = known_plan(engine, *arguments); known != nullptr) [[likely]]
      return *known;
  }
  return checked_plan(engine, arguments);
}

// A graph may be replayed beside calls that borrow the engine's workspace: without one of its own a call that is
// captured leaves its keys whole. Slower, and the same bits. One that merges in one launch has counters of its own from
// then on, which are the answer; where there are none, two launches merge.
[[gnu::cold, gnu::noinline]] void* plan_captured(Engine& engine, const Arguments& call, CallPlan& plan) {
  if (call.split.workspace == nullptr) {
    plan.problem.splits = 1;
  } else {
    void* counters = engine.captured_counters(arrivals_of(plan.problem, plan.runs));
    if (counters != nullptr) return counters;
    plan.problem.launches = attention::Launches::two;
  }
  plan.runs = runs_of(engine, call, plan.problem);
  plan.code = shape_of(plan.problem, plan.runs).shape().code;
  return nullptr;
}

// A capture has no room for kernels that are missing: those of two launches, which it needs where no counters are left,
// are made behind the first call that needs none of them.
void load_two_launches_behind(Engine& engine, const Arguments& arguments, const LatentProblem& of_call) {
  LatentProblem problem = of_call;
  problem.launches = attention::Launches::two;
  const Runs runs = runs_of(engine, arguments, problem);
  engine.load_behind(LatentCall(arguments, problem, runs, engine.target_row(), engine.toggles()));
}

}  // namespace

struct Calls {
  using Arguments = wavejit_attention_latent_arguments;

  // `ask(call)` of the checked call, as it is where its stream is not captured.
  template <typename Answer, typename Ask>
  static Result<Answer> asked(const Engine& engine, const Arguments* arguments, Ask ask) {
    const auto plan = plan_of(engine, arguments);
    if (!plan) return std::unexpected(plan.error());
    if (auto workspace = check_workspace(*arguments, plan->runs.workspace_bytes); !workspace)
      return std::unexpected(workspace.error());
    LatentCall call(*arguments, plan->problem, plan->runs, plan->code, engine.target_row(), engine.toggles());
    return ask(call);
  }

  static Result<void> run(Engine& engine, const Arguments* arguments, hip_abi::hipStream_t stream) {
    auto plan = plan_of(engine, arguments);
    if (!plan) return std::unexpected(plan.error());
    // Only a call of several runs asks HIP whether its stream is captured.
    void* counters = nullptr;
    const Runs& runs = plan->runs;
    if (runs.count > 1 && runs.second_count == 0 && (arguments->split.workspace == nullptr || runs.merged) &&
        engine.is_capturing(stream))
      counters = plan_captured(engine, *arguments, *plan);
    if (auto workspace = check_workspace(*arguments, runs.workspace_bytes); !workspace) return workspace;
    LatentCall call(*arguments, plan->problem, runs, plan->code, engine.target_row(), engine.toggles());
    call.arrival_counters = counters;
    const bool is_cold = call.may_need_two_launches() && !engine.is_loaded(call);
    Result<void> done = engine.run(call, stream);
    if (done && is_cold) [[unlikely]]
      load_two_launches_behind(engine, *arguments, call.problem());
    return done;
  }

  static Result<void> prepare(Engine& engine, const Arguments* arguments) {
    return asked<void>(engine, arguments, [&](LatentCall& call) -> Result<void> {
      if (auto loaded = engine.load(call); !loaded) return loaded;
      // As behind a first call: no later one is cold.
      if (call.may_need_two_launches()) load_two_launches_behind(engine, *arguments, call.problem());
      return {};
    });
  }

  static Result<std::size_t> workspace(const Engine& engine, const Arguments* arguments) {
    auto problem = check(arguments);
    if (!problem) return std::unexpected(problem.error());
    take_rows(*problem, engine.target_row(), engine.toggles());
    const Runs runs = plan_runs(*problem, engine.target_row(), any_reach);
    LatentCall call(*arguments, *problem, runs, engine.target_row(), engine.toggles());
    call.workspace = nullptr;  // whoever asks for the size has none yet
    if (auto supported = engine.supports(call); !supported) return std::unexpected(supported.error());
    return runs.workspace_bytes;
  }
};

extern const runtime::CallFunctions call_functions = runtime::functions_of<Calls>(WAVEJIT_ATTENTION_LATENT);

}  // namespace wavejit::attention_latent

extern "C" wavejit_status wavejit_attention_latent(wavejit_engine* engine,
                                                   const wavejit_attention_latent_arguments* arguments,
                                                   ihipStream_t* stream) {
  return wavejit::runtime::run_call<wavejit::attention_latent::Calls>(engine, arguments, stream);
}
