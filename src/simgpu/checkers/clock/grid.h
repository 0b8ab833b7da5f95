// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A whole launch in time, from a sample of its workgroups: compute units are timed one by one, each with the workgroups
// that the dispatcher would give it, and what they take is handed out to all workgroups in the order of dispatch.
#pragma once

#include <cstdint>
#include <expected>
#include <span>
#include <string>
#include <vector>

#include "simgpu/checkers/clock/compute_unit.h"
#include "simgpu/checkers/clock/launch_memory.h"
#include "simgpu/checkers/clock/occupancy.h"
#include "simgpu/checkers/clock/sample.h"
#include "simgpu/checkers/clock/sharing.h"
#include "simgpu/checkers/clock/survey.h"

namespace wavejit::simgpu::clock {

struct GridResult {
  Occupancy occupancy;
  unsigned resident = 0;  // workgroups a compute unit: occupancy, or fewer when there are not enough
  std::uint64_t workgroups = 0;
  std::uint64_t cycles = 0;             // of the whole launch
  std::uint64_t cold_cycles = 0;        // of those: before the first instruction, and until arguments are there
  double busy = 0;                      // part of the time that places for workgroups were taken: the rest is tail
  double matrix_busy = 0;               // all SIMDs, whole launch
  double steady_matrix_busy = 0;        // middle half of the compute units timed
  std::uint64_t write_back_cycles = 0;  // of `cycles`: at the end, until memory has all that was written
  std::string doubt;                    // why the sample may say nothing about the launch; empty: no reason is known
  double shared_lines = 0;  // of the lines that a workgroup reads, those that neighbours on the die read too
  std::vector<SampledTime> sample;
  std::vector<ComputeUnitResult> units;  // one for each of `sample`
};

// Before a launch's first instruction, and until its arguments are there.
std::uint64_t cold_cycles(const timing::Timing& timing);

// `traces`: those of workgroups_of(seeds), ascending. `timeline`: for how many cycles in the middle of the first unit's
// time events are kept. `survey`: given if workgroups' times follow their work, else null. `memory`: what launches
// before left in caches.
std::expected<GridResult, std::string> time_grid(Program& program, const GridShape& shape, std::span<const Seed> seeds,
                                                 std::span<const WorkgroupTrace> traces, std::uint64_t timeline = 0,
                                                 const Survey* survey = nullptr, const LaunchMemory& memory = {});

}  // namespace wavejit::simgpu::clock
