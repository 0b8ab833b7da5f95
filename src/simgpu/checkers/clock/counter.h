// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Counters of a wave: what it has issued and what has come back, in order, as s_waitcnt counts it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>

#include "simgpu/checkers/clock/result.h"

namespace wavejit::simgpu::clock {

inline constexpr double not_yet = std::numeric_limits<double>::infinity();

// Something that a wave has issued and a counter still counts.
struct Outstanding {
  double done = not_yet;
  Cause cause = Cause::vector_memory;
};

// Results arrive in order.
class Counter {
 public:
  std::uint64_t issue(Outstanding entry) {
    entries_.push_back(entry);
    return retired_ + entries_.size() - 1;
  }
  void finish(std::uint64_t number, double done) { entries_[number - retired_].done = done; }
  void retire(double now) {
    while (!entries_.empty() && entries_.front().done <= now) {
      entries_.pop_front();
      ++retired_;
    }
  }
  std::size_t pending() const { return entries_.size(); }
  bool has_retired(std::uint64_t number) const { return number < retired_; }
  Cause cause() const { return entries_.front().cause; }

 private:
  std::deque<Outstanding> entries_;
  std::uint64_t retired_ = 0;
};

// Where the end of an access is told.
struct Ticket {
  Counter* counter = nullptr;
  std::uint64_t entry = 0;
  void finish(double done) const { counter->finish(entry, done); }
};

}  // namespace wavejit::simgpu::clock
