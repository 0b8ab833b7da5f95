// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Gradients on their way out: accumulators whose column is a lane's row, times a factor, in the storage type or in f32.
// And f32 ones that a call before left, on their way in.
#pragma once

#include <span>
#include <vector>

#include "codegen/language/fragment.h"
#include "templates/attention/emit/slice.h"
#include "templates/attention_backward/kernel/spec.h"

namespace wavejit::attention_backward {

// Bytes of an element of a gradient.
constexpr int gradient_bytes(const KernelWords& words) {
  return attention::bytes_of(words.gradients_fp32 ? DataType::fp32 : words.dtype);
}

// Accumulator i holds the dims of block i of row `row` (per lane). Rows beyond the slice are dropped.
void store_rows(language::Kernel& kernel, const attention::Slice& slice, language::Value* row,
                language::Value* lane_group, language::Element element, bool fp32,
                std::span<const language::Accumulator> sums, language::Value* factor);

// f32 rows where store_rows leaves them. Rows beyond the slice are zeros.
std::vector<language::Accumulator> load_rows(language::Kernel& kernel, const attention::Slice& slice,
                                             language::Value* row, language::Value* lane_group,
                                             const language::AccumulatorLayout& layout, std::size_t count);
// Four of them: registers r … r + 3 of accumulator `number`, as <4 x f32>.
language::Value* load_four(language::Kernel& kernel, const attention::Slice& slice, language::Value* row,
                           language::Value* lane_group, const language::AccumulatorLayout& layout, std::size_t number,
                           int r);

}  // namespace wavejit::attention_backward
