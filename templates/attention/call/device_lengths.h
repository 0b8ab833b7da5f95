// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The debug mode WAVEJIT_CHECK_LENGTHS: lengths that stand in device memory, read and judged on the host.
#pragma once

#include "families/call/family.h"
#include "templates/attention/call/paging.h"
#include "templates/attention/call/sequences.h"

namespace wavejit::attention {

// Copies starts, lengths, first keys and the block table out, when what writes them is done, and refuses the first
// element that cannot be: starts not from 0 or descending, beyond the tensor's rows, a sequence longer than the
// maximum; key lengths outside 0 … the sequence's keys; pages that the cache does not have.
families::Result<void> check_device_lengths(families::DeviceMemory& memory, const Extents& extents,
                                            const wavejit_tensor& q, const wavejit_tensor& k,
                                            const wavejit_sequences& call, const wavejit_pages& pages);

// key_lengths alone, of sequences of `rows` keys at most; `what`: what refusals call those, "the keys of the scores".
families::Result<void> check_key_lengths(families::DeviceMemory& memory, const std::int32_t* key_lengths,
                                         std::size_t sequences, std::int64_t most, const char* what);

}  // namespace wavejit::attention
