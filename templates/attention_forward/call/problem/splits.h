// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How many runs a call's keys are cut into, and what that costs: a pure function of the problem, the target and what
// was asked for. docs/split-keys.md says what a user may rely on.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "targets/targets.h"
#include "templates/attention_forward/call/problem/problem.h"

namespace wavejit::attention_forward {

struct SplitPlan {
  enum class Reason : std::uint8_t {
    asked_by_call,
    asked_by_engine,  // kv_splits
    one_chunk,        // there is nothing to cut
    whole,            // auto: more than a few query rows
    fills_device,     // auto
    device_is_full,   // auto: cutting would not help
    beyond_kernels,   // more chunks, heads or rows than kernels count
  };
  std::uint32_t splits = 1;  // 1: the kernel that does not split
  std::uint64_t workspace_bytes = 0;
  Reason reason = Reason::whole;
};

// A number of splits is a hint, since it shows in no bit. More than the longest sequence has chunks are not launched,
// and where kernels cannot count so far nothing is cut.
SplitPlan plan_splits(const AttentionProblem& problem, const targets::Target& target,
                      std::optional<std::int32_t> kv_splits);

// What the kernel that walks the keys is asked for.
AttentionShape kernel_shape(const AttentionProblem& problem, const SplitPlan& plan, const targets::Target& target);

// "4, each up to 8 chunks of 1024 keys, 17301504 bytes of workspace: the call says so"
std::string describe(const SplitPlan& plan, const AttentionProblem& problem);

}  // namespace wavejit::attention_forward
