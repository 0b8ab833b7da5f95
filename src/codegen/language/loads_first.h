// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Scalar loads that come together. The backend keeps instructions in order: a load of one argument where it is first
// asked for, then its use, then the load of the next one, is a wait for each. A kernel of a few thousand cycles that
// begins with sixteen of them waits longer for its arguments than for its first keys.
#pragma once

#include "codegen/language/kernel.h"

namespace wavejit::language {

// Reorders what is emitted so far. Arguments are read at the entry, all together. In every block what other scalar
// loads need comes first, and they themselves as early as that: those that wait for no other, then those behind them,
// then `then`, which are loads by lanes of memory that nobody writes, with what they need; then the rest of the block.
// Nothing leaves its block but arguments; no order changes of what writes or has effects.
void loads_first(Kernel& kernel, const Values& then = {});

}  // namespace wavejit::language
