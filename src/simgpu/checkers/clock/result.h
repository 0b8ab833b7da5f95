// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the clock found out about one compute unit: cycles, what was busy, and what every wave waited for.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "simgpu/checkers/clock/memory_path.h"
#include "simgpu/checkers/clock/step.h"

namespace wavejit::simgpu::clock {

// Why a wave did not issue at a look at its SIMD.
enum class Cause : std::uint8_t {
  own_interval,   // what it issued before still occupies it
  matrix_result,  // an operand comes out of the matrix pipe
  operand,        // an operand comes from elsewhere
  matrix_pipe,    // the pipe is busy
  vector_port,    // the vector issue port is busy
  other_wave,     // another wave was chosen
  vector_memory,  // s_waitcnt vmcnt
  lds,            // s_waitcnt lgkmcnt, LDS
  scalar_memory,  // s_waitcnt lgkmcnt, scalar loads
  counter,        // a counter is full
  queue,          // the queue of LDS or of vector memory is full
  barrier,
  branch,
  pause,  // s_nop, s_sleep
  fetch,  // instructions come from L2
  count
};
inline constexpr std::size_t cause_count = static_cast<std::size_t>(Cause::count);
std::string_view to_text(Cause cause);

using CyclesByCause = std::array<std::uint64_t, cause_count>;

struct StepCount {
  std::uint64_t issued = 0;
  CyclesByCause waited{};  // cycles that waves stood before it
};

struct WaveResult {
  std::uint64_t workgroup = 0;
  unsigned wave = 0;
  unsigned simd = 0;
  std::uint64_t start = 0;
  std::uint64_t end = 0;
  std::uint64_t issued = 0;
  CyclesByCause waited{};
};

struct SimdResult {
  std::uint64_t matrix_busy = 0;  // cycles of the matrix pipe
  std::uint64_t port_busy = 0;    // cycles of the vector port, matrix instructions included
  std::uint64_t overlapped = 0;   // port cycles of other instructions while the pipe was busy
  // Cycles in which neither pipe nor port did anything, by what the foremost wave waited for.
  CyclesByCause idle{};
  std::uint64_t empty = 0;  // no wave at all
};

// One instruction in time, for pictures.
struct TimelineEvent {
  std::uint64_t start = 0;
  std::uint32_t cycles = 0;
  std::uint32_t step = 0;           // of the program
  std::uint16_t wave = 0;           // in ComputeUnitResult::waves
  Cause waited_for = Cause::count;  // `count`: it ran; else the wave waited before it
};

struct ComputeUnitResult {
  std::uint64_t cycles = 0;
  std::vector<WaveResult> waves;  // in the order in which they started
  std::vector<SimdResult> simds;
  std::vector<StepCount> steps;  // by place in the program
  // Cycles of all matrix pipes by time, this many cycles a bucket.
  static constexpr std::uint64_t bucket_cycles = 256;
  std::vector<std::uint64_t> matrix_buckets;
  std::uint64_t lds_busy = 0;
  std::uint64_t lds_lost = 0;      // of those, to bank conflicts
  std::uint64_t address_busy = 0;  // cycles of vector memory's address unit
  MemoryCounts memory;
  // What the busiest needs, at its rate or this compute unit's part of it: LDS, an address unit, a level of memory.
  std::uint64_t busiest_cycles = 0;
  std::uint64_t write_back_cycles = 0;  // of those, after the last wave has ended
  std::vector<TimelineEvent> timeline;

  void add_matrix_busy(std::uint64_t from, int cycles);
  double matrix_busy() const;
  // In the middle half of the run: without what begins and ends a workgroup.
  double steady_matrix_busy() const;
};

}  // namespace wavejit::simgpu::clock
