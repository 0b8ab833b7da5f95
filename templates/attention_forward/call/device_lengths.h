// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The debug mode WAVEJIT_CHECK_LENGTHS: lengths that stand in device memory, read and judged on the host.
#pragma once

#include "families/call/family.h"
#include "templates/attention_forward/call/problem.h"

namespace wavejit::attention_forward {

// Copies query_starts, key_starts and key_lengths out, when what writes them is done, and refuses the first element
// that cannot be: starts not from 0 or descending, beyond the tensor's rows, a sequence longer than the maximum; key
// lengths outside 0 … the sequence's keys.
Result<void> check_device_lengths(families::DeviceMemory& memory, const AttentionProblem& problem,
                                  const wavejit_attention_forward_arguments& call);

}  // namespace wavejit::attention_forward
