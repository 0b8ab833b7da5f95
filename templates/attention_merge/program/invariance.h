// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The dimensions of attention_merge: what may change about a call without showing in a merged row.
#pragma once

#include "tools/invariance/invariance.h"

namespace wavejit::attention_merge::program {

const tools::Invariance& merge_invariance();

}  // namespace wavejit::attention_merge::program
