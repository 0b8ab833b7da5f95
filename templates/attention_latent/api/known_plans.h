// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Calls of attention_latent that a thread made of late, with what they came to (families/call/known_calls.h).
//
// Thread-safe: each thread has its own. Nothing is allocated.
#pragma once

#include <cstdint>

#include "runtime/call/engine.h"
#include "templates/attention_latent/call/problem.h"
#include "templates/attention_latent/call/runs.h"

namespace wavejit::attention_latent {

struct CallPlan {
  LatentProblem problem;
  Runs runs;
  std::uint64_t code = 0;  // of shape_of(problem, runs)
};

// Null: none. There until the thread's next call.
const CallPlan* known_plan(const runtime::Engine& engine, const wavejit_attention_latent_arguments& call);
// Keeps the plan of a checked call; one that wants a report is not kept.
void keep_plan(const runtime::Engine& engine, const wavejit_attention_latent_arguments& call, const CallPlan& plan);

}  // namespace wavejit::attention_latent
