// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The dimensions of cache_append: what may change about a call without showing in what a token writes.
#pragma once

#include "tools/invariance/invariance.h"

namespace wavejit::cache_append::program {

const tools::Invariance& append_invariance();

}  // namespace wavejit::cache_append::program
