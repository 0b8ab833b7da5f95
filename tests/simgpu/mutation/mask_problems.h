// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Calls of attention_forward with bool masks, causal or not, and with biases by tile, for the mutations of the kernels
// that walk what is made of them: few and small, since those kernels are large.
#pragma once

#include <vector>

#include "called.h"

namespace wavejit::tests {

enum class MaskKind { bool_mask, bool_causal, bias };
std::vector<CallProblem> walks_of_masks(int head_dim, int rows, MaskKind kind);

// The same of few rows, up to 32, whose keys are split.
std::vector<CallProblem> masks_of_few_rows(int head_dim, int rows);

}  // namespace wavejit::tests
