// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Calls of attention_forward with lists, of keys and of blocks, for the mutations of the kernels that walk them: holes
// and repeats, entries and counts that lie, lists of one chunk and of several, and of nothing.
#pragma once

#include <vector>

#include "called.h"
#include "support/attention_run.h"

namespace wavejit::tests {

// `pages`: those of one problem after another; none for dense keys.
std::vector<CallProblem> lists_of_keys(const std::vector<Pages>& pages, bool slots);
// Problems for the kernel that merges the parts of their walks.
std::vector<CallProblem> lists_of_keys_in_runs();
// Bool masks, in rows and keys of every kind; `lists`: what is found in them is looked at, too.
std::vector<CallProblem> bool_masks(int head_dim, bool lists);
// The call with a bias by tile that has `heads` heads.
AttentionCase with_mask_of_numbers(AttentionCase which, int heads, std::uint64_t seed);
// Biases by tile of 16 bits, and the walks that are made of them.
std::vector<CallProblem> biases_by_tile();
// Blocks of `rows` rows and `keys` keys. `walks`: the walks that are made of them are compared, too, in the order of
// the workgroups.
std::vector<CallProblem> lists_of_blocks(int rows, int keys, bool causal, bool walks = false);

}  // namespace wavejit::tests
