// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Calls of latent attention for the mutations of its kernels: rows that fill no tile, each number of keys of a tile,
// several tiles and chunks, sequences without rows or keys, lengths and starts that lie.
#pragma once

#include <string>
#include <vector>

#include "called.h"

namespace wavejit::tests {

// Dense and packed, of more than 32 + `more` heads.
std::vector<CallProblem> latent_dense(int more);
// Keys in pages of two sizes, behind the causal mask.
std::vector<CallProblem> latent_paged(const std::string& page, const std::string& smaller_page);
// Keys that a list of each query names. `words`: where they stand.
std::vector<CallProblem> latent_listed(const std::string& words);
// Keys of a sequence cut into runs, whose parts are merged.
std::vector<CallProblem> latent_in_runs();
// By the last workgroup to arrive, twice over the same counters.
std::vector<CallProblem> latent_in_one_launch();
// The same of lengths, rows and numbers of every kind.
std::vector<CallProblem> latent_merged();

}  // namespace wavejit::tests
