// From a checked call and its kernel to one HIP launch, or two where keys are split. Pure arithmetic and calls into
// HIP.
#pragma once

#include <optional>

#include "runtime/hip_library.h"
#include "runtime/problem.h"
#include "runtime/resolver.h"
#include "targets/targets.h"
#include "templates/attention_combine/call/arguments.h"
#include "templates/attention_forward/call/arguments.h"

namespace wavejit::runtime {

// Toggles that are launch arguments, not code.
struct LaunchToggles {
  bool lazy_rescale = true;  // off: sums follow a row's maximum at once
  // Heads of one kv head on one die. Nothing: where several heads share one and the dies divide them (a guess: K and V
  // then stay in one die's L2; the published remap lost on causal masks, but it moved query tiles too).
  std::optional<bool> xcd_swizzle = std::nullopt;
};

// Where a call that splits keys keeps its partial results.
struct SplitLaunch {
  std::uint32_t splits = 1;
  const void* workspace = nullptr;
};

attention_forward::Arguments kernel_arguments(const AttentionProblem& problem,
                                              const wavejit_attention_forward_arguments& call,
                                              const targets::Target& target, const LaunchToggles& toggles);

Result<void> launch(const HipDevice& device, const targets::Target& target, const LaunchToggles& toggles,
                    const LoadedKernel& kernel, const AttentionProblem& problem,
                    const wavejit_attention_forward_arguments& call, const SplitLaunch& split,
                    hip_abi::hipStream_t stream);

}  // namespace wavejit::runtime
