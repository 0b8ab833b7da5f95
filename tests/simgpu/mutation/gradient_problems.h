// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Calls of attention_backward for mutations.
#pragma once

#include <string>
#include <vector>

#include "called.h"

namespace wavejit::tests {

// Under a mask: " causal", " window=40,3". `type`: bf16 or fp16.
std::vector<CallProblem> gradients_under(const std::string& mask, const std::string& dims = " d64",
                                         const std::string& type = "bf16");
// Those, and lies.
std::vector<CallProblem> gradients_and_lies(const std::string& mask, const std::string& dims = " d64",
                                            const std::string& type = "bf16");
// Starts that leave their order or lie behind the last row or key, in sequences with rows or keys; a sequence longer
// than the longest, a length below zero; the last row of a group's heads, and a sequence that ends before others do.
std::vector<CallProblem> gradients_of_lies(const std::string& words, const std::string& type);
// Biases of every kind of sharing, lies included, where a lane has this many keys in a row; sinks.
std::vector<CallProblem> gradients_of_biases(const std::string& type, int keys_of_lane = 4);
std::vector<CallProblem> gradients_of_sinks();

}  // namespace wavejit::tests
