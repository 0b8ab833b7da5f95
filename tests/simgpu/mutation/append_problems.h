// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Calls of cache_append for the mutations of its kernels: slots within, at and beyond the cache's ends, positions
// beyond the tables, tokens and heads that fill no wave.
#pragma once

#include <vector>

#include "called.h"

namespace wavejit::tests {

// Turned by halves with Q, 16 bits.
std::vector<CallProblem> turned_appends();
// Into e4m3, in scales that are found; of heads of this many dims at most.
std::vector<CallProblem> narrow_appends(int most_dims);

}  // namespace wavejit::tests
