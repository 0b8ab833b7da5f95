// A call as a problem descriptor, so that a line of a log can be handed to explain, prebuild, prepare and benchmarks.
#pragma once

#include "runtime/descriptor.h"
#include "runtime/problem.h"

namespace wavejit::runtime {

// Lengths of single sequences stand in device memory, where nobody looks.
ProblemDescriptor describe_call(const AttentionProblem& problem, const wavejit_attention_forward_arguments& call);

}  // namespace wavejit::runtime
