// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Events: a place in a stream and the time when the stream came there. Time is the host's: how long the simulation
// took, not how long a GPU would take.
#pragma once

#include "hip_abi/hip_abi.h"
#include "simgpu/front_ends/hip/stream.h"

namespace wavejit::simgpu::hip_front {

// Puts the event into the stream behind everything that is in it. For launches that record events of their own.
hip_abi::hipError_t record_event(hip_abi::hipEvent_t event, const std::shared_ptr<Stream>& stream);

}  // namespace wavejit::simgpu::hip_front
