// From a checked call and its kernel to one HIP launch. Pure arithmetic and one call into HIP.
#pragma once

#include "runtime/hip_library.h"
#include "runtime/problem.h"
#include "runtime/resolver.h"
#include "templates/attention_forward/arguments.h"

namespace wavejit::runtime {

attention_forward::Arguments kernel_arguments(const AttentionProblem& problem,
                                              const wavejit_attention_forward_arguments& call);

Result<void> launch(const HipDevice& device, const LoadedKernel& kernel, const AttentionProblem& problem,
                    const wavejit_attention_forward_arguments& call, hip_abi::hipStream_t stream);

}  // namespace wavejit::runtime
