// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tensors of 8 bits as a run has them: which byte stands for which input, and the scales that the call gives.
#pragma once

#include <cstdint>
#include <vector>

#include "templates/attention/program/experiment.h"
#include "templates/attention/program/inputs.h"

namespace wavejit::attention::program {

// The problem's inputs; of tensors of 8 bits rounded to them, times their scales.
Inputs inputs_of(const Experiment& problem);

// [scale_batches][scale_heads]; empty without scales, and where tokens have them. No powers of two, and products with
// bytes that f32 holds.
std::vector<float> cache_scales_of(const Experiment& problem, Operand operand);
// Where tokens have them, counted through the batch: the like of their numbers.
float token_scale_of(const Experiment& problem, Operand operand, std::int64_t token, std::int64_t head);

// Scales of integers: of Q's or K's rows as the tensor has them, or of their heads. Empty: none.
std::vector<float> integer_scales_of(const Experiment& problem, Operand operand);

}  // namespace wavejit::attention::program
