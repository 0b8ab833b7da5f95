// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Calls of attention_forward with lists, of keys and of blocks, for the mutations of the kernels that walk them: holes
// and repeats, entries and counts that lie, lists of one chunk and of several, and of nothing.
#pragma once

#include <optional>
#include <vector>

#include "called.h"
#include "support/attention_run.h"

namespace wavejit::tests {

std::vector<CallProblem> lists_of_keys(const std::optional<Pages>& pages, bool slots);
// Blocks of so many rows and keys. `walks`: what they are made of is looked at, too, in the order of the workgroups.
std::vector<CallProblem> lists_of_blocks(int rows, int keys, bool causal, bool walks = false);

}  // namespace wavejit::tests
