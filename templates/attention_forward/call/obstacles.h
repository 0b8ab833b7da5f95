// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Why a shape has no kernel, in the words of a caller: which of them stand in the way, and what would do.
#pragma once

#include "families/call/failure.h"
#include "templates/attention_forward/call/route.h"

namespace wavejit::attention_forward {

// `failure`: the one of choose_kernel, whose reason is kept. Where a kernel is pinned, or how it does something, and the
// shape has another, and
// where no change of two words helps, nothing is added to it.
[[gnu::cold]] Failure tell_obstacles(const AttentionShape& shape, const targets::Target& target, const Toggles& toggles,
                                     Failure failure);

}  // namespace wavejit::attention_forward
