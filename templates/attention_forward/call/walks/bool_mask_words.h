// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// "bool_mask=1|h|b|bh": which batches and heads have a mask of their own.
#pragma once

#include "families/call/words.h"
#include "templates/attention_forward/call/descriptor.h"

namespace wavejit::attention_forward {

families::DescriptorWord<ProblemDescriptor> bool_mask_word();
// What may not stand beside it, as calls are refused.
Result<void> finish_bool_mask(const ProblemDescriptor& said);
// What may not stand beside "bias=1 bias_by_tile".
Result<void> finish_bias_by_tile(const ProblemDescriptor& said);

}  // namespace wavejit::attention_forward
