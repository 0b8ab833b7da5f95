// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The end of a walk whose parts are merged in the same launch: by the waves of the workgroup that is the last of its
// tile of rows to leave parts.
#pragma once

#include "codegen/language/softmax.h"
#include "templates/attention_forward/emit/workgroup.h"

namespace wavejit::attention_forward {

// Called by every wave of the workgroup, after the last part's stores.
void merge_if_last(language::Kernel& kernel, const ForwardKernel& spec, const Workgroup& workgroup,
                   const language::Softmax& softmax);

}  // namespace wavejit::attention_forward
