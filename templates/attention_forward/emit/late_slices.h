// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// V and O of workgroups whose waves share a chunk: what they need is made where it is used, because scalar registers are
// short before.
#pragma once

#include "templates/attention_forward/emit/workgroup.h"

namespace wavejit::attention_forward {

// Waves that share a chunk, and no words that take their scalar registers.
bool has_scalars_left(const ForwardKernel& spec);
// Whether O's arguments are loaded where rows end, which costs a wait. Four waves that share a chunk of a window, with
// tiles that pass through registers, have no scalar registers for O during the walk where they look up pages of 64
// dims, or what a bool mask hides.
bool makes_outputs_last(const language::Kernel& kernel, const ForwardKernel& spec);

}  // namespace wavejit::attention_forward
