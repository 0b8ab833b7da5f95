// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The functions of the C ABI that are attention_latent's.
#include "runtime/call/c_call.h"
#include "templates/attention_latent/api/known_plans.h"
#include "templates/attention_latent/call/call.h"

using namespace wavejit::runtime;  // this file is the two worlds' seam

namespace {

namespace latent = wavejit::attention_latent;
using Arguments = wavejit_attention_latent_arguments;

latent::Runs runs_of(const Engine& engine, const Arguments& call, const latent::LatentProblem& problem) {
  return latent::plan_runs(problem, engine.target_row(),
                           call.workspace == nullptr ? latent::any_reach : call.workspace_bytes);
}

// Every call but one that the thread knows.
[[gnu::noinline]] Result<latent::CallPlan> checked_plan(const Engine& engine, const Arguments* arguments) {
  auto problem = latent::check(arguments);
  if (!problem) return std::unexpected(problem.error());
  latent::take_rows(*problem, engine.target_row(), engine.toggles());
  const latent::Runs runs = runs_of(engine, *arguments, *problem);
  const latent::CallPlan plan = {
      .problem = *problem, .runs = runs, .code = latent::shape_of(*problem, runs).shape().code};
  latent::keep_plan(engine, *arguments, plan);
  return plan;
}

// The thread's own copy: what it knows may go while hooks and loggers run.
Result<latent::CallPlan> plan_of(const Engine& engine, const Arguments* arguments) {
  if (arguments != nullptr && arguments->size == sizeof *arguments) [[likely]] {
    if (const latent::CallPlan* known = latent::known_plan(engine, *arguments); known != nullptr) [[likely]]
      return *known;
  }
  return checked_plan(engine, arguments);
}

// A graph may be replayed beside calls that borrow the engine's workspace: without one of its own a call that is
// captured leaves its keys whole. Slower, and the same bits. One that merges in one launch has counters of its own from
// then on, which are the answer; where there are none, two launches merge.
[[gnu::cold, gnu::noinline]] void* plan_captured(Engine& engine, const Arguments& call, latent::CallPlan& plan) {
  if (call.workspace == nullptr) {
    plan.problem.splits = 1;
  } else {
    void* counters = engine.captured_counters(latent::arrivals_of(plan.problem, plan.runs));
    if (counters != nullptr) return counters;
    plan.problem.launches = wavejit::attention::Launches::two;
  }
  plan.runs = runs_of(engine, call, plan.problem);
  plan.code = latent::shape_of(plan.problem, plan.runs).shape().code;
  return nullptr;
}

bool not_captured() { return false; }

// `ask(call)` of the checked call. `captured()`: whether the stream that it goes to is being captured.
template <typename Captured, typename Ask>
wavejit_status asked(wavejit_engine* engine, const Arguments* arguments, Captured captured, Ask ask) {
  return guarded([&]() -> Result<void> {
    if (auto given = require_engine(engine); !given) return given;
    const Engine& on = *engine->engine;
    auto plan = plan_of(on, arguments);
    if (!plan) return std::unexpected(plan.error());
    // Only a call of several runs asks HIP.
    void* counters = nullptr;
    const latent::Runs& runs = plan->runs;
    if (runs.count > 1 && runs.second_count == 0 && (arguments->workspace == nullptr || runs.merged) && captured())
      counters = plan_captured(*engine->engine, *arguments, *plan);
    if (auto workspace = latent::check_workspace(*arguments, runs.workspace_bytes); !workspace) return workspace;
    latent::LatentCall call(*arguments, plan->problem, runs, plan->code, on.target_row(), on.toggles());
    call.arrival_counters = counters;
    return ask(call);
  });
}

// A capture has no room for kernels that are missing: those of two launches, which it needs where no counters are left,
// are made behind the first call that needs none of them.
void load_two_launches_behind(Engine& engine, const Arguments& arguments, const latent::LatentProblem& of_call) {
  latent::LatentProblem problem = of_call;
  problem.launches = wavejit::attention::Launches::two;
  const latent::Runs runs = runs_of(engine, arguments, problem);
  engine.load_behind(latent::LatentCall(arguments, problem, runs, engine.target_row(), engine.toggles()));
}

}  // namespace

extern "C" {

wavejit_status wavejit_attention_latent(wavejit_engine* engine, const Arguments* arguments, ihipStream_t* stream) {
  return asked(
      engine, arguments, [&] { return engine->engine->is_capturing(stream); },
      [&](auto& call) -> Result<void> {
        Engine& on = *engine->engine;
        const bool is_cold = call.may_need_two_launches() && !on.is_loaded(call);
        Result<void> done = on.run(call, stream);
        if (done && is_cold) [[unlikely]]
          load_two_launches_behind(on, call.arguments(), call.problem());
        return done;
      });
}

wavejit_status wavejit_attention_latent_workspace(wavejit_engine* engine, const Arguments* arguments, size_t* bytes) {
  return guarded([&]() -> Result<void> {
    if (auto given = require_engine(engine); !given) return given;
    if (auto given = require(bytes, "bytes", "where the number of bytes goes"); !given) return given;
    auto problem = latent::check(arguments);
    if (!problem) return std::unexpected(problem.error());
    const Engine& on = *engine->engine;
    latent::take_rows(*problem, on.target_row(), on.toggles());
    const latent::Runs runs = latent::plan_runs(*problem, on.target_row(), latent::any_reach);
    latent::LatentCall call(*arguments, *problem, runs, on.target_row(), on.toggles());
    call.workspace = nullptr;  // whoever asks for the size has none yet
    if (auto supported = on.supports(call); !supported) return supported;
    *bytes = runs.workspace_bytes;
    return {};
  });
}

wavejit_status wavejit_attention_latent_supported(wavejit_engine* engine, const Arguments* arguments) {
  return asked(engine, arguments, not_captured, [&](auto& call) { return engine->engine->supports(call); });
}

wavejit_status wavejit_attention_latent_ready(wavejit_engine* engine, const Arguments* arguments) {
  return asked(engine, arguments, not_captured, [&](auto& call) { return engine->engine->is_ready(call); });
}

wavejit_status wavejit_attention_latent_describe(wavejit_engine* engine, const Arguments* arguments,
                                                 wavejit_line_callback line, void* context) {
  return asked(engine, arguments, not_captured, [&](const auto& call) -> Result<void> {
    if (auto given = require(line, "line", "a function that takes the line"); !given) return given;
    line(context, call.descriptor(wavejit::families::Call::Line::whole).c_str());
    return {};
  });
}

}  // extern "C"
