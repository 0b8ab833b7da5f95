// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A copy engine's queue (SDMA): a ring of dwords whose pointers count bytes and never go back. Packets run in their
// order, on a thread of the queue's own.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "boards/board.h"
#include "simgpu/front_ends/queues/queue_thread.h"
#include "simgpu/front_ends/queues/signals.h"
#include "simgpu/process/queue_config.h"

namespace wavejit::simgpu::queues {

struct SdmaPlace {
  std::uint64_t ring = 0;
  std::uint64_t bytes = 0;         // of the ring
  std::uint64_t read_pointer = 0;  // where the 64-bit pointers lie
  std::uint64_t write_pointer = 0;
  boards::SdmaPackets layout = {};
  QueueConfig config = {};
  std::uint64_t (*clock)() = clock_now;  // what time stamps hold
  // After the queue has stopped and said why: a copy engine has no signal that would tell the runtime. May be empty.
  std::function<void()> stopped = {};
};

class SdmaQueue {
 public:
  SdmaQueue(const SdmaPlace& place, RaiseEvent raise);

  // There are new packets.
  void ring_doorbell() { thread_.ring(); }
  // What the queue waits for at this moment; empty: for nothing.
  std::string waits_for() const { return thread_.waits_for(); }

 private:
  bool take_packet();
  void fail(const std::string& text);

  SdmaPlace place_;
  RaiseEvent raise_;
  bool failed_ = false;  // of the thread alone
  QueueThread thread_;   // last: it uses everything above
};

}  // namespace wavejit::simgpu::queues
