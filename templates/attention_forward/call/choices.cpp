// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a call chooses beside its tensors: splits and their workspace, flags, a hint.
#include <string>

#include "families/call/refusal.h"
#include "templates/attention/call/flags.h"
#include "templates/attention_forward/call/checks.h"

namespace wavejit::attention_forward {
namespace {

using refusal::bad;
using refusal::refuse;

constexpr std::uintptr_t workspace_alignment = 256;

Result<void> check_splits(const wavejit_attention_forward_arguments& call) {
  if (call.split.splits < 0 || call.split.splits > max_splits) {
    return refuse(bad(WAVEJIT_INVALID_ARGUMENT, "splits", std::to_string(call.split.splits),
                      refusal::up_to("0 (the engine's choice), 1", max_splits)));
  }
  if (reinterpret_cast<std::uintptr_t>(call.split.workspace) % workspace_alignment != 0) {
    return refuse(bad(WAVEJIT_INVALID_ARGUMENT, "workspace", refusal::pointer_text(call.split.workspace),
                      "null (the engine's own), or device memory aligned to 256 bytes"));
  }
  if (call.split.workspace == nullptr && call.split.workspace_bytes != 0) {
    return refuse(bad(WAVEJIT_INVALID_ARGUMENT, "workspace_bytes", std::to_string(call.split.workspace_bytes),
                      "0 while workspace is null"));
  }
  return {};
}

}  // namespace

Result<void> check_choices(const wavejit_attention_forward_arguments& call, AttentionProblem& problem) {
  if (auto splits = check_splits(call); !splits) return splits;
  problem.splits = static_cast<std::uint32_t>(call.split.splits);
  if ((call.head.flags & ~std::uint32_t{WAVEJIT_CHECK_LENGTHS | WAVEJIT_LISTS_ALIKE}) != 0) [[unlikely]] {
    constexpr std::uint32_t known = WAVEJIT_CHECK_LENGTHS | WAVEJIT_LISTS_ALIKE | WAVEJIT_SCALE_IS_ZERO |
                                    WAVEJIT_NO_COMPILE | WAVEJIT_COMPILE_BEHIND | WAVEJIT_ONE_LAUNCH |
                                    WAVEJIT_TWO_LAUNCHES | WAVEJIT_BIAS_BY_TILE;
    if (auto flags = check_flags(call.head.flags, known, call.modifiers.scale); !flags) return flags;
    problem.launches = attention::launches_of(call.head.flags);
    problem.shape.bias_by_tile = (call.head.flags & WAVEJIT_BIAS_BY_TILE) != 0;
  }
  if (call.sequences.max_total_keys < 0)
    return refuse(bad(WAVEJIT_INVALID_ARGUMENT, "max_total_keys", std::to_string(call.sequences.max_total_keys),
                      "0, which says nothing, and the keys of all sequences together"));
  return {};
}

}  // namespace wavejit::attention_forward
