// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A kernel's schedule as text, for people: what `wavejit explain --isa` prints beside the machine code. No LLVM.
#pragma once

#include <string>

#include "templates/attention_forward/kernel/spec.h"

namespace wavejit::attention_forward::program {

// Lines, each with its end: what every row of the pipeline's table does, in order. Empty for a pipeline without a
// table.
std::string schedule_text(const ForwardKernel& spec);

}  // namespace wavejit::attention_forward::program
