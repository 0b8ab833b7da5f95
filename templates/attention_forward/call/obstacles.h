// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Why a shape has no kernel, in the words of a caller: which of them stand in the way, and what would do.
#pragma once

#include "families/call/failure.h"
#include "templates/attention_forward/call/route.h"

namespace wavejit::attention_forward {

// `failure` is choose_kernel's, and its reason is kept. Nothing is added to it if the caller pinned a kernel, or how it
// works, and the shape has another one; nor if no change of up to two words helps.
[[gnu::cold]] Failure tell_obstacles(const AttentionShape& shape, const targets::Target& target, const Toggles& toggles,
                                     Failure failure);

}  // namespace wavejit::attention_forward
