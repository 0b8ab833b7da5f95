// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Gradients on their way out: accumulators whose column is a lane's row, times a factor, in the storage type or in f32.
#pragma once

#include <span>

#include "codegen/language/fragment.h"
#include "templates/attention/emit/slice.h"

namespace wavejit::attention_backward {

// Accumulator i holds dims 32i … 32i + 31 of row `row` (per lane). Rows beyond the slice are dropped.
void store_rows(language::Kernel& kernel, const attention::Slice& slice, language::Value* row,
                language::Value* lane_group, language::Element element, bool fp32,
                std::span<const language::Accumulator> sums, language::Value* factor);

}  // namespace wavejit::attention_backward
