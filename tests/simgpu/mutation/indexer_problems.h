// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Calls of sparse_indexer for the mutations of its two kernels: lengths and first and last keys within, at and beyond
// the ends, rows that see nothing, equal scores, NaN and infinities where a border falls.
#pragma once

#include <vector>

#include "called.h"

namespace wavejit::tests {

std::vector<CallProblem> dense_scores();
std::vector<CallProblem> paged_scores();
std::vector<CallProblem> lists_of_scores();

}  // namespace wavejit::tests
