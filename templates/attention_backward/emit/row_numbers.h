// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One f32 a query row: LSE, its gradient, delta. And what the weights of a row are made with.
#pragma once

#include <cstddef>

#include "codegen/language/buffer.h"
#include "templates/attention/emit/sequence.h"

namespace wavejit::attention_backward {

// The numbers of one head of one sequence; rows beyond the sequence read as 0. `at`: the offset of a
// RowNumbersArgument.
language::Buffer row_numbers(language::Kernel& kernel, std::size_t at, language::Value* batch, language::Value* head,
                             const attention::Sequence& sequence);

// b = −LSE · log2 e, −∞ of a row that saw no key: then its weights are 0, and −(−∞) would make them NaN. An LSE that is
// NaN has a short one (convert.h), as delta has.
language::Value* shift_of(language::Kernel& kernel, language::Value* log_sum_exp);

// p = exp2(score · c + b)
language::Value* weight_of(language::Kernel& kernel, language::Value* score, language::Value* scale,
                           language::Value* shift);

}  // namespace wavejit::attention_backward
