// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a call chooses beside its tensors: splits and their workspace, flags, a hint.
#include <string>

#include "families/call/refusal.h"
#include "templates/attention/call/flags.h"
#include "templates/attention/call/hints.h"
#include "templates/attention/call/workspace.h"
#include "templates/attention_forward/call/checks.h"

namespace wavejit::attention_forward {
namespace {

using refusal::bad;
using refusal::refuse;

}  // namespace

Result<void> check_choices(const wavejit_attention_forward_arguments& call, AttentionProblem& problem) {
  if (auto splits = attention::check_split(call.split); !splits) return splits;
  problem.splits = static_cast<std::uint32_t>(call.split.splits);
  problem.hints = call.head.flags & attention::all_hints;
  if ((call.head.flags & ~std::uint32_t{WAVEJIT_CHECK_LENGTHS | attention::all_hints}) != 0) [[unlikely]] {
    constexpr std::uint32_t known = WAVEJIT_CHECK_LENGTHS | attention::all_hints | WAVEJIT_SCALE_IS_ZERO |
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
