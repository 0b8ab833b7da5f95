// The debug mode WAVEJIT_CHECK_LENGTHS: lengths that stand in device memory, read and judged on the host.
#pragma once

#include "runtime/failure.h"
#include "runtime/hip_library.h"
#include "runtime/problem.h"

namespace wavejit::runtime {

// Waits for the stream (what writes the arrays may be on it), copies query_starts, key_starts and key_lengths and
// refuses the first element that cannot be: starts not from 0 or descending, beyond the tensor's rows, a sequence
// longer than the maximum; key lengths outside 0 … the sequence's keys.
Result<void> check_device_lengths(const HipDevice& device, const AttentionProblem& problem,
                                  const wavejit_attention_forward_arguments& call, hip_abi::hipStream_t stream);

}  // namespace wavejit::runtime
