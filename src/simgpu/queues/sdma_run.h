// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a copy engine's commands do to memory. Every address is looked up before it is touched.
#pragma once

#include <cstdint>
#include <string>

#include "simgpu/queues/queue_thread.h"
#include "simgpu/queues/sdma_packets.h"
#include "simgpu/queues/signals.h"

namespace wavejit::simgpu::queues {

// Empty: done, or the queue ends meanwhile. Otherwise which bytes are no memory of the GPU; none were changed then.
std::string run_sdma(const SdmaCommand& command, QueueThread& thread, RaiseEvent raise);

}  // namespace wavejit::simgpu::queues
