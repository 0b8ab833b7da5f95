// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The calls of attention_latent on an engine (runtime/call/call_functions.h).
#pragma once

#include "runtime/call/call_functions.h"
#include "templates/attention/call/tensors.h"
#include "templates/attention_latent/api/moving_pointers.h"
#include "templates/attention_latent/call/call.h"

namespace wavejit::attention_latent {

struct Calls {
  using Arguments = wavejit_attention_latent_arguments;
  using Call = LatentCall;

  static Result<CallPlan> plan(const runtime::Engine& engine, const Arguments* arguments) {
    auto problem = check(arguments);
    if (!problem) return std::unexpected(problem.error());
    take_rows(*problem, engine.target_row(), engine.toggles());
    return plan_call(*problem, engine.target_row(), attention::reach_of(arguments->split));
  }
  static bool is_remembered(const Arguments& /*call*/) { return true; }
  static std::uint64_t bytes_of(const wavejit_tensor& tensor) { return attention::touched_bytes(tensor); }
};

}  // namespace wavejit::attention_latent
