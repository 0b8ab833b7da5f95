// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// From raw scores and dP − delta of a block to the operands of the products behind them: P and dS, rounded.
#pragma once

#include <vector>

#include "codegen/language/matrix.h"
#include "templates/attention_backward/kernel/spec.h"

namespace wavejit::attention_backward {

// The factor that a soft cap leaves in a score's gradient: 4 · (r · (1 − r)), r = 1 / (exp2(score · rate) + 1). Empty
// without the word. `rate`: its magnitude.
language::Values cap_slopes(language::Kernel& kernel, const KernelWords& words, language::Value* rate,
                            const language::Accumulator& raw);
// The rate as the arguments of a launch have it, finite; null without the word.
language::Value* cap_rate(language::Kernel& kernel, const KernelWords& words);

// 16 registers of a block → two operand fragments of 16 rows (keys) each.
std::vector<language::OperandB> packed(language::Kernel& kernel, const language::MatrixUnit& matrix,
                                       const language::Accumulator& values);

}  // namespace wavejit::attention_backward
