// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/front_ends/queues/queue_time.h"

#include <algorithm>
#include <utility>

#include "simgpu/front_ends/queues/packets.h"
#include "simgpu/front_ends/queues/signals.h"
#include "simgpu/machine/allocations/memory.h"

namespace wavejit::simgpu::queues {
namespace {

constexpr std::uint64_t picoseconds_per_tick = 1'000'000'000'000 / clock_hz;

// A cycle of 2.1 GHz is no whole number of picoseconds: rounded once a launch, not once a cycle.
std::uint64_t picoseconds(std::uint64_t cycles, int clock_khz) {
  constexpr unsigned __int128 picoseconds_per_millisecond = 1'000'000'000;
  return static_cast<std::uint64_t>(cycles * picoseconds_per_millisecond / static_cast<unsigned>(clock_khz));
}

}  // namespace

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

void QueueTime::ran(const LaunchTime& launch, int clock_khz, bool waits_for_previous) {
  if (!simulated_) return;
  is_launch_ = true;
  start_ =
      now_ + (was_launch_ ? picoseconds(waits_for_previous ? launch.dependent_cycles : 0, clock_khz) : event_cost_);
  now_ = start_ + picoseconds(launch.cycles, clock_khz);
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
