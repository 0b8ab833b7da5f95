// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the clock keeps of a wave while it runs, and of the place where its workgroup is.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "simgpu/checkers/clock/counter.h"
#include "simgpu/checkers/clock/ordered_issue.h"
#include "simgpu/checkers/clock/result.h"
#include "simgpu/checkers/clock/step.h"
#include "simgpu/checkers/clock/trace.h"
#include "simgpu/machine/instruction/instruction.h"

namespace wavejit::simgpu::clock {

struct Slot;

struct RunningWave {
  const WaveTrace* trace = nullptr;
  std::vector<std::uint32_t> steps;  // of the trace's records
  Slot* slot = nullptr;
  std::size_t position = 0;
  std::size_t result = 0;  // in ComputeUnitResult::waves
  unsigned simd = 0;
  unsigned priority = 0;
  double next_issue = 0;
  Cause next_cause = Cause::own_interval;
  double memory_from = 0;  // LDS and memory instructions wait until then
  double scalar_from = 0;  // scalar ones likewise
  bool at_barrier = false;
  bool ended = false;
  std::size_t signals = 0;  // of barriers in two parts
  Counter vector_counter;
  Counter local_counter;
  Counter store_counter;  // these two where each kind of memory has a counter of its own
  Counter scalar_counter;
  bool has_stored = false;
  std::uint64_t last_store = 0;     // in the counter of stores
  std::array<double, 512> ready{};  // vector registers
  std::array<bool, 512> from_matrix{};
  std::array<double, sgpr_count> scalar_ready{};
  OrderedWave ordered;
  const std::vector<double>* pinned = nullptr;  // of a replay (ComputeUnitRequest)
  // The wait that is being counted, for the timeline.
  Cause waiting_for = Cause::count;
  std::uint64_t waiting_since = 0;
};

// A place for a workgroup.
struct Slot {
  std::vector<RunningWave*> waves;
  std::uint64_t instance = 0;  // how many workgroups started before
  std::size_t alive = 0;
  std::size_t at_barrier = 0;
  // Barriers in two parts that all waves have signalled, and when the last of them was.
  std::size_t barriers = 0;
  double released = 0;
};

struct Simd {
  std::vector<RunningWave*> waves;  // oldest first
  double port_free = 0;
  double pipe_free = 0;
  OrderedQueue ordered;
};

// Why an instruction has to wait for what its own wave did before, `Cause::count` when it has not.
Cause wait_obstacle(RunningWave& wave, const Step& step, double now);
Cause operand_obstacle(const RunningWave& wave, const Step& step, double now);
// Why the vector port or the matrix pipe does not take it. `slack`: what a look grants beyond its own cycle, a resource
// that gets free before the next look.
Cause port_obstacle(const Simd& simd, const Step& step, const timing::IssueCosts& costs, double now, double slack);

// Opens the barrier if all waves that have not ended stand at it.
void release_barrier(Slot& slot, const timing::WaveRules& rules, double now);

// What a vector instruction leaves: when its results may be read.
void write_results(RunningWave& wave, const Step& step, const timing::WaveRules& rules, double now);

}  // namespace wavejit::simgpu::clock
