// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/front_ends/queues/queue_time.h"

#include <algorithm>
#include <utility>

#include "simgpu/front_ends/queues/packets.h"
#include "simgpu/front_ends/queues/signals.h"
#include "simgpu/machine/allocations/memory.h"

namespace wavejit::simgpu::queues {

SimulatedTime& SimulatedTime::instance() {
  // Never destroyed: queues may run while static destructors do.
  static auto* const time = new SimulatedTime();
  return *time;
}

SimulatedTime::SimulatedTime() : origin_(clock_now()) {}

std::uint64_t SimulatedTime::begin_work() {
  const std::scoped_lock lock(mutex_);
  if (working_++ == 0) work_began_ = latest_;
  return work_began_;
}

void SimulatedTime::came_to(std::uint64_t time, bool rests) {
  const std::scoped_lock lock(mutex_);
  latest_ = std::max(latest_, time);
  if (rests) --working_;
}

std::uint64_t SimulatedTime::latest() const {
  const std::scoped_lock lock(mutex_);
  return latest_;
}

std::uint64_t SimulatedTime::ticks(std::uint64_t time) const { return origin_ + (time / picoseconds_per_tick); }

std::uint64_t SimulatedTime::time_of(std::uint64_t ticks) const {
  if (ticks < origin_) return 0;
  const std::uint64_t time = (ticks - origin_) * picoseconds_per_tick;
  return time <= latest() ? time : 0;
}

QueueTime::~QueueTime() { stop(); }

void QueueTime::stop() {
  const std::scoped_lock lock(mutex_);
  stopped_ = true;
  if (works_) SimulatedTime::instance().came_to(now_, true);
  works_ = false;
}

// With the lock.
void QueueTime::begin_work() {
  works_ = true;
  earliest_ = std::max(earliest_, SimulatedTime::instance().begin_work());
}

void QueueTime::rung(std::uint64_t submitted) {
  if (!simulated_) return;
  const std::scoped_lock lock(mutex_);
  if (!works_ && !stopped_ && submitted > done_) begin_work();
}

void QueueTime::begin(std::uint64_t packet) {
  if (!simulated_) {
    start_ = clock_now();
    return;
  }
  const std::scoped_lock lock(mutex_);
  done_ = packet;
  if (!works_) begin_work();  // seen before its doorbell rang
  now_ = std::max(now_, earliest_);
  start_ = now_;
  was_launch_ = std::exchange(is_launch_, false);
}

void QueueTime::waited_for(std::uint64_t signal) {
  if (!simulated_ || signal == 0) return;
  now_ = std::max(now_, SimulatedTime::instance().time_of(host_pointer<Signal>(signal)->end));
}

std::optional<LaunchBegin> QueueTime::launch_begin(bool waits_for_previous) const {
  if (!simulated_) return std::nullopt;
  return LaunchBegin{.origin = SimulatedTime::instance().ticks(0),
                     .picoseconds = now_ + (was_launch_ ? 0 : event_cost_),
                     .waits = was_launch_ && waits_for_previous};
}

void QueueTime::ran(const LaunchTime& launch, int clock_khz, bool waits_for_previous) {
  const auto begin = launch_begin(waits_for_previous);
  if (!begin) return;
  is_launch_ = true;
  start_ = begin->picoseconds + picoseconds_of(begin->waits ? launch.dependent_cycles : 0, clock_khz);
  now_ = start_ + picoseconds_of(launch.cycles, clock_khz);
}

Stamps QueueTime::end(std::uint64_t submitted) {
  if (!simulated_) return {.start = start_, .end = clock_now()};
  const std::scoped_lock lock(mutex_);
  ++done_;
  if (submitted <= done_) works_ = false;
  SimulatedTime& time = SimulatedTime::instance();
  time.came_to(now_, !works_);
  return {.start = time.ticks(start_), .end = time.ticks(now_)};
}

}  // namespace wavejit::simgpu::queues
