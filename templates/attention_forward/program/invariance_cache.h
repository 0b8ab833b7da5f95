// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Batches whose keys and values 8 bits hold, times powers of two: the 16-bit kernel over them is what every call over
// the bytes and their scales is held against.
#pragma once

#include <string>

#include "templates/attention_forward/program/invariance_call.h"
#include "tools/call_memory.h"
#include "wavejit/wavejit.h"

namespace wavejit::attention_forward::program {

// Rounds K and V of a batch to e4m3 or, by turns, e5m2 and int8, to values that both encodings have; of three batches
// one has a scale for each head of each sequence, and one for each token of each kv head.
void make_cached(Batch& batch);
// Rounds Q, too, all to e4m3. Of such a batch every call is over bytes, and held against one over bytes.
void make_cached_queries(Batch& batch);

// K and V of a call, and perhaps Q, as bytes in the encoding of a target, and their scales. What is no number is NaN.
void give_bytes(wavejit_attention_forward_arguments& call, CallMemory& memory, const Given& given,
                const std::string& target);

// Batches whose queries and keys are integers of 8 bits, the same numbers in every call: Q and K of a call, and their
// scales (invariance_integers.cpp).
void give_integers(wavejit_attention_forward_arguments& call, CallMemory& memory, const Given& given);

// "e4m3, scaled"; "int8, scales of keys".
std::string cache_text(const Batch& batch);
std::string integers_text(const Batch& batch);

}  // namespace wavejit::attention_forward::program
