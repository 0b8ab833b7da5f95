// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How many runs a call's keys are cut into, and what that costs: a pure function of the problem, the target and what
// was asked for. docs/split-keys.md says what a user may rely on.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "targets/targets.h"
#include "templates/attention_forward/call/problem/problem.h"
#include "templates/families/call/failure.h"

namespace wavejit::attention_forward {

struct SplitPlan {
  enum class Reason : std::uint8_t {
    asked_by_call,
    asked_by_engine,  // kv_splits
    one_chunk,        // there is nothing to cut
    keeps_bits,       // auto: results may not depend on the batch, so that nothing is cut
    fills_device,     // auto, with results that may depend on the batch
    device_is_full,   // the same: cutting would not help
  };
  std::uint32_t splits = 1;  // 1: the kernel that does not split
  std::uint64_t workspace_bytes = 0;
  Reason reason = Reason::keeps_bits;
};

// More splits than the longest sequence has chunks leave runs empty and change no bit: they are not launched.
// WAVEJIT_INVALID_ARGUMENT where kernels cannot count so far.
Result<SplitPlan> plan_splits(const AttentionProblem& problem, const targets::Target& target,
                              std::optional<std::int32_t> kv_splits);

// What the kernel that walks the keys is asked for.
inline AttentionShape kernel_shape(const AttentionProblem& problem, const SplitPlan& plan) {
  return plan.splits == 1 ? problem.shape : problem.shape.of_split_kernel();
}

// "4, each up to 8 chunks of 256 keys, 2162688 bytes of workspace: the call says so"
std::string describe(const SplitPlan& plan, const AttentionProblem& problem);

}  // namespace wavejit::attention_forward
