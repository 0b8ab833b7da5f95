// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/checkers/clock/timeline_notes.h"

namespace wavejit::simgpu::clock {

void TimelineNotes::note(RunningWave& wave, std::uint32_t place, const Step& step, Cause cause, std::uint64_t now) {
  if (first_ == last_) return;
  if (cause == wave.waiting_for && cause != Cause::count) return;
  const auto index = static_cast<std::uint16_t>(wave.result);
  if (wave.waiting_for != Cause::count && inside(wave.waiting_since)) {
    events_.push_back({.start = wave.waiting_since,
                       .cycles = static_cast<std::uint32_t>(now - wave.waiting_since),
                       .step = place,
                       .wave = index,
                       .waited_for = wave.waiting_for});
  }
  wave.waiting_for = cause;
  wave.waiting_since = now;
  if (cause != Cause::count || !inside(now)) return;
  events_.push_back({.start = now,
                     .cycles = static_cast<std::uint32_t>(step.kind == Kind::matrix ? step.pipe_cycles : step.interval),
                     .step = place,
                     .wave = index});
}

}  // namespace wavejit::simgpu::clock
