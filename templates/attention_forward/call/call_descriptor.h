// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A call as a problem descriptor, so that a line of a log can be handed to explain, prebuild, prepare and benchmarks.
#pragma once

#include "templates/attention_forward/call/descriptor.h"
#include "templates/attention_forward/call/problem.h"

namespace wavejit::attention_forward {

// Lengths of single sequences stand in device memory, where nobody looks.
ProblemDescriptor describe_call(const AttentionProblem& problem, const wavejit_attention_forward_arguments& call);

}  // namespace wavejit::attention_forward
