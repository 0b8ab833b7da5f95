// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// attention::ScoreModifiers where a lane owns a key and registers are rows. The same operations on the same numbers:
// docs/canonical-arithmetic.md, "Modifiers".
#pragma once

#include "templates/attention_backward/emit/key_place.h"

namespace wavejit::attention_backward {

class RowModifiers {
 public:
  RowModifiers(language::Kernel& kernel, const KeyKernel& spec, const KeyPlace& place, language::Value* cap_rate);

  // c of the weights that follow.
  language::Value* softmax_scale() const;
  // Raw scores of the rows from `first_row` on → modified, −∞ where the row does not see the lane's key.
  void apply(language::Value* head, language::Value* first_row, language::Accumulator& scores) const;

 private:
  language::Values load_bias(language::Value* head, language::Value* first_row,
                             const language::AccumulatorLayout& layout) const;

  language::Kernel& kernel_;
  const KeyKernel& spec_;
  const KeyPlace& place_;
  language::Value* cap_rate_;
};

}  // namespace wavejit::attention_backward
