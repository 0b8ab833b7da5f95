// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How far off the clock was for programs without a matrix instruction, by what a launch takes its time with:
// bench/silicon/kinds.tsv, which `./dev bench silicon` writes.
#pragma once

#include <string>

namespace wavejit::bench {

// A table of these kinds, and of kernels with matrix instructions below them.
std::string ratios_by_kind();

}  // namespace wavejit::bench
