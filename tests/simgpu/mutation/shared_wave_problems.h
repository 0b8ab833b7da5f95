// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Calls of attention_forward whose waves share each chunk of keys, for mutations of their kernels.
#pragma once

#include <vector>

#include "called.h"

namespace wavejit::tests {

// Two kv heads of head dim 128: steps of one tile and of four, none, three chunks, each number of keys of a tile, rows
// of two tiles and rows that see no key, lengths and starts that lie.
std::vector<CallProblem> shared_waves();
// The same of runs whose parts the last workgroup to arrive merges: two to seventeen parts, runs that leave none,
// rows of one turn and of several.
std::vector<CallProblem> merged_shared_waves();

}  // namespace wavejit::tests
