// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One compute unit in time: waves of several workgroups issue what their traces say, by the rules of timing/timing.h.
//
// Each SIMD is looked at every fourth cycle. At a look every wave may issue one instruction, and each unit takes one:
// the wave of the highest priority first, the oldest of those. A cost that is no multiple of the looks adds up: a port
// that takes five cycles lets four instructions pass in twenty.
#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "simgpu/checkers/clock/result.h"
#include "simgpu/checkers/clock/trace.h"

namespace wavejit::simgpu::clock {

struct ComputeUnitRequest {
  // Run in this order, as many at a time as `resident` says. A trace may stand here more than once.
  std::vector<const WorkgroupTrace*> workgroups;
  unsigned resident = 1;
  // A wave of the first workgroup: what traces say of a workgroup that has not ended yet. Waves stand where their traces
  // end, and the run ends with this one's.
  std::optional<std::size_t> until;
  Neighbours neighbours;
  // Timeline events of cycles [first, last).
  std::uint64_t timeline_first = 0;
  std::uint64_t timeline_last = 0;
  // Replays of hardware's traces, workgroups of one wave each, all on the first SIMD: for each of a wave's instructions
  // the cycle in which the trace says that it issued, whatever the model says it waits for; negative: the model says.
  std::vector<std::vector<double>> pinned;
};

// Deterministic: the same traces and the same request give the same result. The error names a wave that will never
// issue again.
std::expected<ComputeUnitResult, std::string> run_compute_unit(Program& program, const ComputeUnitRequest& request);

}  // namespace wavejit::simgpu::clock
