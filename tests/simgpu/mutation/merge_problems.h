// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Calls of attention_merge for the mutations of its kernel: rows that fill no wave and several, dims of every
// remainder, parts beside each other and on their own, rows that saw no key, NaN.
#pragma once

#include <vector>

#include "called.h"

namespace wavejit::tests {

// Parts of fp32, results of bf16.
std::vector<CallProblem> merges();

}  // namespace wavejit::tests
