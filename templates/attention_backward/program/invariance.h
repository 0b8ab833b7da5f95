// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The dimensions of attention_backward: what may change about a call without showing in a bit of a gradient.
#pragma once

#include "tools/invariance/invariance.h"

namespace wavejit::attention_backward::program {

const tools::Invariance& gradient_invariance();

}  // namespace wavejit::attention_backward::program
