// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Calls of attention_forward that a thread made of late, with what they came to (families/call/known_calls.h).
//
//   if (const CallPlan* known = known_plan(engine, *arguments)) return run_planned(engine, *arguments, *known, stream);
//
// Thread-safe: each thread has its own. Nothing is allocated.
#pragma once

#include <cstdint>

#include "runtime/call/engine.h"
#include "templates/attention_forward/call/problem.h"
#include "templates/attention_forward/call/splits.h"

namespace wavejit::attention_forward {

struct CallPlan {
  AttentionProblem problem;
  SplitPlan splits;
  std::uint64_t code = 0;  // of kernel_shape
};

// Null: none. There until the thread's next call.
const CallPlan* known_plan(const runtime::Engine& engine, const wavejit_attention_forward_arguments& call);
// Keeps the plan of a checked call. One that depends on more addresses than KnownCalls looks at is not kept: with a
// bias, a mask by elements, lists, a report, pages whose rows stand in units.
void keep_plan(const runtime::Engine& engine, const wavejit_attention_forward_arguments& call, const CallPlan& plan);

}  // namespace wavejit::attention_forward
