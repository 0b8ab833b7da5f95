// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Children of a process that uses GPUs: fork copies its memory and none of its threads, so that no queue would ever
// move. What a child asks for is refused, and a child that gives GPUs work ends, with one line that says so.
#pragma once

#include <cstdint>

#include "simgpu/front_ends/thunk/abi.h"

namespace wavejit::simgpu::thunk {

// Once, when the runtime starts.
void watch_for_forks();
bool in_child();
// Says the line, once a process.
KmtStatus refuse_in_child();
[[noreturn]] void end_child();

// Where doorbells lie. Nobody looks at what is written there, but a child that writes to it ends: copy engines'
// doorbells are rung in no other way. 0 when there is no memory for it.
std::uint64_t doorbell_place();

}  // namespace wavejit::simgpu::thunk
