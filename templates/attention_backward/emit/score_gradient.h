// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// From raw scores and dP − delta of a block of 32 × 32 to the operands of the products behind them, P and dS, rounded:
// as operations for the vector queue, each a machine instruction or a few.
#pragma once

#include <functional>
#include <vector>

#include "codegen/language/matrix.h"
#include "codegen/language/strand.h"
#include "templates/attention_backward/kernel/ladders.h"
#include "templates/attention_backward/kernel/spec.h"

namespace wavejit::attention_backward {

struct Block {
  language::Accumulator scores;     // then weights
  language::Accumulator gradients;  // dP − delta
  language::Values slopes;          // what a soft cap leaves of each gradient; empty without
  // Two fragments of 16 each.
  std::vector<language::OperandB> weights;
  std::vector<language::OperandB> d_scores;
};

// The factor that a soft cap leaves in a score's gradient: 4 · (r · (1 − r)), r = 1 / (exp2(score · rate) + 1). Empty
// without the word. `rate`: its magnitude.
language::Values cap_slopes(language::Kernel& kernel, const KernelWords& words, language::Value* rate,
                            const language::Accumulator& raw);
// The rate as the arguments of a launch have it, finite; null without the word.
language::Value* cap_rate(language::Kernel& kernel, const KernelWords& words);

class ScoreGradient {
 public:
  // `scale`: c of the weights.
  ScoreGradient(language::Kernel& kernel, const language::MatrixUnit& matrix, const OperationSlots& slots,
                language::Value* scale)
      : kernel_(kernel), matrix_(matrix), slots_(slots), scale_(scale) {}

  // Scores → weights. `shift(r)`: b of register r's row, asked for in order. `rounds`: also to operands.
  void add_weights(language::Strand& strand, Block& block, const std::function<language::Value*(int)>& shift,
                   bool rounds) const;
  // Weights and gradients → dS.
  void add_d_scores(language::Strand& strand, Block& block) const;

 private:
  void add_rounding(language::Strand& strand, const language::Accumulator& from, int pair,
                    std::vector<language::OperandB>& to) const;

  language::Kernel& kernel_;
  const language::MatrixUnit& matrix_;
  OperationSlots slots_;
  language::Value* scale_;
};

}  // namespace wavejit::attention_backward
