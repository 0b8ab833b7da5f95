// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Time that the clock counts: picoseconds of it, cycles of an engine, and ticks of the counter that all of a GPU reads.
#pragma once

#include <chrono>
#include <cstdint>

namespace wavejit::simgpu {

inline constexpr std::uint64_t clock_hz = 100'000'000;  // of that counter
inline constexpr std::uint64_t picoseconds_per_tick = 1'000'000'000'000 / clock_hz;

// The host's clock in these ticks.
inline std::uint64_t clock_now() {
  const std::chrono::nanoseconds now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(now.count()) / (1'000'000'000 / clock_hz);
}

// A cycle of 2.1 GHz is no whole number of picoseconds: rounded once, not once a cycle.
inline std::uint64_t picoseconds_of(std::uint64_t cycles, int clock_khz) {
  constexpr unsigned __int128 picoseconds_per_millisecond = 1'000'000'000;
  return static_cast<std::uint64_t>(cycles * picoseconds_per_millisecond / static_cast<unsigned>(clock_khz));
}
inline std::uint64_t cycles_of(std::uint64_t picoseconds, int clock_khz) {
  constexpr unsigned __int128 picoseconds_per_millisecond = 1'000'000'000;
  return static_cast<std::uint64_t>(picoseconds * static_cast<unsigned __int128>(clock_khz) /
                                    picoseconds_per_millisecond);
}

// Where a launch begins.
struct LaunchBegin {
  std::uint64_t origin = 0;       // of simulated time, in ticks on the host's clock
  std::uint64_t picoseconds = 0;  // since then
  bool waits = false;             // for the launch before it: it begins that much later (LaunchTime::dependent_cycles)
};

}  // namespace wavejit::simgpu
