// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The dimensions of attention_forward: what may change about a call without showing in a bit.
#pragma once

#include "tools/invariance/invariance.h"

namespace wavejit::attention_forward::program {

const tools::Invariance& attention_invariance();

}  // namespace wavejit::attention_forward::program
