// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the environment says of queues beneath AMD's runtime.
#pragma once

#include <chrono>

namespace wavejit::simgpu {

struct QueueConfig {
  // A queue that has waited so long says for what, once a wait; 0: never.
  std::chrono::milliseconds patience = std::chrono::seconds(10);
  // Packets are stamped with the simulated GPU's time (front_ends/queues/queue_time.h), not the host's.
  bool simulated_time = false;
  // What simulated time has between an event and the kernel behind it (WAVEJIT_SIM_EVENT_COST).
  std::chrono::nanoseconds event_cost{0};
};

// As config.h read it.
QueueConfig read_queue_config();

}  // namespace wavejit::simgpu
