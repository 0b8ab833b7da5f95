// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A queue of AQL packets that advances by itself: a thread of its own takes one packet after the other, waits for what
// barriers wait for, runs kernels and completes signals. Packets of a queue run in their order, which satisfies every
// barrier bit.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>

#include "simgpu/front_ends/queues/packets.h"
#include "simgpu/front_ends/queues/queue_thread.h"
#include "simgpu/front_ends/queues/queue_time.h"
#include "simgpu/front_ends/queues/signals.h"
#include "simgpu/machine/device/device.h"
#include "simgpu/machine/device/dispatch.h"
#include "simgpu/process/queue_config.h"

namespace wavejit::simgpu::queues {

// Addresses of what a runtime made for a queue.
struct QueuePlace {
  std::uint64_t fields = 0;  // its amd_queue_t
  std::uint64_t ring = 0;
  std::uint64_t packets = 0;
  // Where a runtime that knows exceptions reads why a queue stopped; 0: from the queue's inactive signal.
  std::uint64_t error_reason = 0;
  std::uint32_t error_event = 0;  // raised when that was written; 0: none
  // How long it waits before it says for what.
  QueueConfig config = {};
};

class AqlQueue {
 public:
  // `raise` tells about signals' events.
  AqlQueue(Device& device, const QueuePlace& place, RaiseEvent raise);
  // When it goes it stops before the next packet; a kernel that runs ends where it is, as hardware ends those of a
  // queue that goes.

  // Its kernels are cooperative: their workgroups may wait for each other.
  void set_cooperative() { cooperative_ = true; }
  // There are new packets.
  void ring_doorbell();
  // What the queue waits for at this moment: "barrier-and packet 7: signal 0x… is 1". Empty: for nothing.
  std::string waits_for() const { return thread_.waits_for(); }

 private:
  struct Outcome {
    QueueError error = QueueError::none;
    std::string text;
  };
  bool take_packets();
  RawPacket* next_packet() const;
  bool is_soon_over(const RawPacket& packet) const;
  Outcome execute(const RawPacket& packet);
  std::uint64_t written_packets() const;
  Outcome dispatch(const DispatchPacket& packet);
  Outcome barrier(const BarrierPacket& packet, bool all);
  Outcome vendor(const RawPacket& packet);
  void fail(const Outcome& outcome);

  QueueFields* fields() const;

  Device& device_;
  QueuePlace place_;
  RaiseEvent raise_;
  QueueTime time_;
  std::atomic<bool> cooperative_ = false;

  std::mutex taking_;    // held by whoever takes a packet
  bool failed_ = false;  // guarded by taking_
  QueueThread thread_;   // last: it uses everything above
};

}  // namespace wavejit::simgpu::queues
