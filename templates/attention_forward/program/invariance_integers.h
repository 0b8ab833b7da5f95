// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Batches whose queries and keys are integers of 8 bits: the same numbers in every call, whatever it changes.
#pragma once

#include "templates/attention_forward/program/invariance_call.h"
#include "tools/call_memory.h"
#include "wavejit/wavejit.h"

namespace wavejit::attention_forward::program {

// Q and K of a call, and their scales.
void give_integers(wavejit_attention_forward_arguments& call, tools::CallMemory& memory, const Given& given);

// K's scales are a number for each head in a third of the batches, and for each key in the others.
bool has_key_scales(const Batch& batch);

}  // namespace wavejit::attention_forward::program
