// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a copy engine's commands do to memory. Every address is looked up before it is touched.
#pragma once

#include <cstdint>
#include <string>

#include "simgpu/front_ends/queues/queue_thread.h"
#include "simgpu/front_ends/queues/sdma_packets.h"
#include "simgpu/front_ends/queues/signals.h"

namespace wavejit::simgpu::queues {

// What is the GPU's and not the memory's.
struct SdmaSurroundings {
  RaiseEvent raise = nullptr;
  std::uint64_t (*clock)() = clock_now;
};

// Empty: done, or the queue ends meanwhile. Otherwise which bytes are no memory of the GPU; none were changed then.
std::string run_sdma(const SdmaCommand& command, QueueThread& thread, const SdmaSurroundings& gpu);

}  // namespace wavejit::simgpu::queues
