// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// From raw scores and dP − delta of a block of 32 × 32 to the operands of the products behind them, P and dS, rounded:
// as operations for the vector queue, each a machine instruction or a few.
#pragma once

#include <functional>
#include <vector>

#include "codegen/language/convert.h"
#include "codegen/language/matrix.h"
#include "codegen/language/strand.h"
#include "templates/attention_backward/kernel/ladders.h"
#include "templates/attention_backward/kernel/spec.h"

namespace wavejit::attention_backward {

// What the queue rounds of a block: eight registers of a lane make a fragment.
struct Rounded {
  std::vector<language::OperandB> fragments;
  int pairs = 0;  // so far
  bool has(int fragment) const { return pairs >= language::OperandLayout::dwords * (fragment + 1); }
};

struct Block {
  language::Accumulator scores;     // then weights
  language::Accumulator gradients;  // dP − delta, then dS
  language::Values slopes;          // what a soft cap leaves of each gradient; empty without
  Rounded weights;
  Rounded d_scores;
  // Registers that the queue has begun with.
  int weighed = 0;
  int differentiated = 0;
};

// What the queue has made of a block and nobody has used yet stays before this point. A branch comes: the backend would
// sink it behind that, away from the matrix instructions that were to hide it.
void add_unused(language::Kernel& kernel, const Block& block, language::Values& unused);

// The factor that a soft cap leaves in a score's gradient: 4 · (r · (1 − r)), r = 1 / (exp2(score · rate) + 1). Empty
// without the word. `rate`: its magnitude.
language::Values cap_slopes(language::Kernel& kernel, const KernelWords& words, language::Value* rate,
                            const language::Accumulator& raw);
// The rate as the arguments of a launch have it, finite; null without the word.
language::Value* cap_rate(language::Kernel& kernel, const KernelWords& words);

class ScoreGradient {
 public:
  // `scale`: c of the weights.
  ScoreGradient(language::Kernel& kernel, const language::MatrixUnit& matrix, const KernelWords& words,
                language::Value* scale)
      : kernel_(kernel),
        matrix_(matrix),
        slots_(slots_of(words, kernel.target())),
        nan_(has_fp32_terms(words) ? language::NanInput::kept : language::NanInput::kept_short),
        scale_(scale) {}

  // A block makes several fragments: products of one can begin before the others are done.

  // Scores → weights. `shift(r)`: b of register r's row. `rounds`: also to operands.
  void add_weights(language::Strand& strand, Block& block, int fragment,
                   const std::function<language::Value*(int)>& shift, bool rounds) const;
  // Weights to operands, which add_weights has not rounded.
  void add_rounded_weights(language::Strand& strand, Block& block, int fragment) const;
  // Weights and gradients → dS.
  void add_d_scores(language::Strand& strand, Block& block, int fragment) const;

 private:
  int registers() const { return language::OperandLayout::slots_of(matrix_.element()); }  // of a fragment
  void add_rounding(language::Strand& strand, const language::Accumulator& from, int pair, Rounded& to) const;

  language::Kernel& kernel_;
  const language::MatrixUnit& matrix_;
  OperationSlots slots_;
  language::NanInput nan_;  // numbers of rows have short ones (row_numbers.h)
  language::Value* scale_;
};

}  // namespace wavejit::attention_backward
