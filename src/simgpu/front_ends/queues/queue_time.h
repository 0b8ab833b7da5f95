// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The time that a queue's packets are stamped with: the host's, or, where the clock keeps time of launches
// (WAVEJIT_SIM_CYCLES=on), the simulated GPU's own.
//
// Simulated time does not pass by itself. A packet begins where its queue's last one ended, and not before the signals
// that it waited for; a kernel takes what the clock says; everything else takes no time. A queue that gets work while
// all others are at rest goes on where the last of them ended: whoever gave it the work may have waited for that. So
// the same program has the same times on every run, as long as it orders what its queues do.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>

#include "simgpu/machine/device/device.h"
#include "simgpu/process/simulated_time.h"

namespace wavejit::simgpu::queues {

// Where the process's queues are in simulated time. All fields are picoseconds since its beginning.
class SimulatedTime {
 public:
  static SimulatedTime& instance();
  // A queue gets work after a rest. It begins no earlier than this: where the last queue ended before the present work
  // of all queues began.
  std::uint64_t begin_work();
  // A queue came so far; `rests`: it has no more to do.
  void came_to(std::uint64_t time, bool rests);
  std::uint64_t latest() const;

  // Ticks of clock_hz, on the scale of clock_now(): they begin when the process looked first.
  std::uint64_t ticks(std::uint64_t time) const;
  // The time of a stamp; 0 for a stamp that is none of this process's simulated time.
  std::uint64_t time_of(std::uint64_t ticks) const;

 private:
  SimulatedTime();
  const std::uint64_t origin_;  // ticks
  mutable std::mutex mutex_;
  std::uint64_t latest_ = 0;
  std::uint64_t work_began_ = 0;
  int working_ = 0;  // queues
};

struct Stamps {
  std::uint64_t start = 0;  // ticks of clock_hz
  std::uint64_t end = 0;
};

// The time of one queue. With `simulated` false everything is the host's clock.
class QueueTime {
 public:
  // `event_cost`: what simulated time has before a kernel that does not follow another directly.
  explicit QueueTime(bool simulated, std::chrono::nanoseconds event_cost = {})
      : simulated_(simulated), event_cost_(static_cast<std::uint64_t>(event_cost.count()) * 1000) {}
  ~QueueTime();
  QueueTime(const QueueTime&) = delete;
  QueueTime& operator=(const QueueTime&) = delete;

  // There may be packets: `submitted` of them so far. From any thread, before the packets are taken.
  void rung(std::uint64_t submitted);

  // These are of the queue's thread. The packet with this number begins.
  void begin(std::uint64_t packet);
  // It waited for this signal, which is complete.
  void waited_for(std::uint64_t signal);
  // It is a kernel: where that begins in simulated time. Nothing: time is the host's.
  std::optional<LaunchBegin> launch_begin(bool waits_for_previous) const;
  // It ran a kernel. One that waited for a kernel directly before it began a little later.
  void ran(const LaunchTime& launch, int clock_khz, bool waits_for_previous);
  // It ends; call this before anybody is told. `submitted`: as above.
  Stamps end(std::uint64_t submitted);
  // The queue stops for good: others are not to take it for one at work.
  void stop();

 private:
  void begin_work();

  const bool simulated_;
  const std::uint64_t event_cost_;  // picoseconds
  std::mutex mutex_;                // of what follows
  bool works_ = false;              // has packets
  bool stopped_ = false;
  std::uint64_t done_ = 0;      // packets
  std::uint64_t earliest_ = 0;  // of the next packet
  // Used by the queue's thread alone.
  std::uint64_t start_ = 0;  // of the packet: picoseconds, or the host's ticks
  std::uint64_t now_ = 0;
  bool is_launch_ = false;   // the packet is one
  bool was_launch_ = false;  // the packet before it was one
};

}  // namespace wavejit::simgpu::queues
