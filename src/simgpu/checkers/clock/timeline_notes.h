// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What ran and what waited in a piece of a compute unit's time, taken down as it happens.
#pragma once

#include <cstdint>
#include <vector>

#include "simgpu/checkers/clock/result.h"
#include "simgpu/checkers/clock/wave_state.h"

namespace wavejit::simgpu::clock {

class TimelineNotes {
 public:
  // Events of cycles [first, last).
  TimelineNotes(std::uint64_t first, std::uint64_t last) : first_(first), last_(last) {}
  // The wave stood before `step`, at that place of the program, and issued it or not.
  void note(RunningWave& wave, std::uint32_t place, const Step& step, Cause cause, std::uint64_t now);
  std::vector<TimelineEvent> take() { return std::move(events_); }

 private:
  bool inside(std::uint64_t at) const { return at >= first_ && at < last_; }
  std::uint64_t first_;
  std::uint64_t last_;
  std::vector<TimelineEvent> events_;
};

}  // namespace wavejit::simgpu::clock
