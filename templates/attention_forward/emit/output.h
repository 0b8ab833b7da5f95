// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The end of a query tile: O divided, rounded and stored; LSE. Or, where keys are split, the last chunk's part.
#pragma once

#include <span>

#include "codegen/language/matrix.h"
#include "codegen/language/softmax.h"
#include "templates/attention_forward/emit/merged_rows.h"
#include "templates/attention_forward/emit/workgroup.h"

namespace wavejit::attention_forward {

// All of it, for a pipeline whose walk is over: the one place that knows what a kernel leaves behind. `lines`: whose
// slots for merged rows O may pass through on its way, null: it goes as lanes hold it.
void finish_rows(language::Kernel& kernel, const ForwardKernel& spec, const Workgroup& workgroup,
                 const language::Softmax& softmax, const MergedRows& merged, const language::SoftmaxState& state,
                 const language::Values& carried, language::Element element, std::span<language::Accumulator> outputs,
                 const LineTiles* lines = nullptr);

// The end of a row: what O is multiplied with, 1 / l without a sink, and LSE, null where it is not wanted.
struct RowEnd {
  language::Value* factor;
  language::Value* log_sum_exp;
};
RowEnd end_of_row(language::Kernel& kernel, const Workgroup& workgroup, const language::Softmax& softmax,
                  const language::PartStatistics& row, bool lse);

// O = fma(accumulated, factor, +0), factor = 1 / l without a sink. Rows past the end are dropped by the descriptor.
void store_output(language::Kernel& kernel, const ForwardKernel& spec, const Workgroup& workgroup,
                  language::Element element, std::span<const language::Accumulator> outputs, language::Value* factor);

// The same by way of the wave's own slots in LDS, so that neighbouring lanes store neighbouring bytes: a quarter of the
// turns of the address unit. With halves swapped, and a head a workgroup only.
void store_output_by_lines(language::Kernel& kernel, const ForwardKernel& spec, const Workgroup& workgroup,
                           const LineTiles& lines, language::Element element,
                           std::span<const language::Accumulator> outputs, language::Value* factor);

void store_log_sum_exp(language::Kernel& kernel, const Workgroup& workgroup, language::Value* log_sum_exp);

}  // namespace wavejit::attention_forward
