// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A queue of AQL packets that advances by itself: a thread of its own takes one packet after the other, waits for what
// barriers wait for, runs kernels and completes signals. Packets of a queue run in their order, which satisfies every
// barrier bit.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>

#include "simgpu/device/device.h"
#include "simgpu/launch/dispatch.h"
#include "simgpu/queue_config.h"
#include "simgpu/queues/packets.h"
#include "simgpu/queues/signals.h"

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
  // Stops before the next packet; a packet that runs is waited for.
  ~AqlQueue();
  AqlQueue(const AqlQueue&) = delete;
  AqlQueue& operator=(const AqlQueue&) = delete;

  // There are new packets.
  void ring_doorbell();
  // What the queue waits for at this moment: "barrier-and packet 7: signal 0x… is 1". Empty: for nothing.
  std::string waits_for() const;

 private:
  struct Outcome {
    QueueError error = QueueError::none;
    std::string text;
  };
  void work();
  bool take_packets();
  Outcome execute(const RawPacket& packet);
  Outcome dispatch(const DispatchPacket& packet);
  Outcome barrier(const BarrierPacket& packet, bool all);
  Outcome vendor(const RawPacket& packet);
  void fail(const Outcome& outcome);
  template <typename Describe, typename IsMet>
  bool wait_until(Describe describe, IsMet is_met);

  QueueFields* fields() const;

  Device& device_;
  QueuePlace place_;
  RaiseEvent raise_;

  mutable std::mutex mutex_;
  std::condition_variable doorbell_;
  bool rung_ = false;      // guarded by mutex_
  std::string waits_for_;  // likewise
  std::atomic<bool> stops_ = false;
  bool failed_ = false;  // of the thread alone
  std::thread thread_;   // last: it uses everything above
};

}  // namespace wavejit::simgpu::queues
