// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the waves of a workgroup executed, taken down while the simulated GPU ran it: instructions in order, LDS turns,
// lines of device memory. The clock replays it. In kernels without races what a wave executes does not depend on time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "simgpu/checkers/clock/sample.h"
#include "simgpu/machine/launch/observer.h"
#include "timing/timing.h"

namespace wavejit::simgpu::clock {

struct Record {
  const Instruction* instruction = nullptr;
  std::uint32_t first = 0;        // memory: of its lines in WaveTrace::lines; LDS: turns lost to bank conflicts
  std::uint32_t count : 10 = 0;   // memory: lines, none of a launch's arguments; LDS: turns without conflicts
  std::uint32_t turns : 10 = 0;   // vector memory: of the address unit
  std::uint32_t halves : 12 = 0;  // vector memory: of those lines, touched
};

struct WaveTrace {
  std::vector<Record> records;
  // Numbers of the lines touched, one run per memory instruction, no line twice in it.
  std::vector<std::uint64_t> lines;
};

struct WorkgroupTrace {
  std::uint64_t workgroup = 0;  // linear id
  std::vector<WaveTrace> waves;
};

// Takes down one instruction, which the wave is about to execute.
void take_down(const timing::Timing& timing, const Wave& wave, const Instruction& instruction, WaveTrace& trace);

// Takes down the chosen workgroups of one launch. Each runs on one host thread, so nothing is locked.
class TraceRecorder : public Observer {
 public:
  // `workgroups`: linear ids, ascending.
  TraceRecorder(const timing::Timing& timing, std::span<const std::uint64_t> workgroups,
                std::span<const std::uint64_t> counted = {});
  // Others in their place, ascending, while nothing runs: taken down, or only counted. `counted` beside those that are
  // taken down: none of them.
  void trace(std::span<const std::uint64_t> workgroups, std::span<const std::uint64_t> counted = {});
  void count(std::span<const std::uint64_t> workgroups);
  bool wants(std::uint64_t workgroup) const override;
  void before(const Wave& wave, const Instruction& instruction) override;
  const std::vector<WorkgroupTrace>& traces() const { return traces_; }
  // Instructions of those that were taken down.
  std::vector<SampledWork> work() const;
  // The work of those that were only counted.
  const std::vector<SampledWork>& counted() const { return counts_; }

 private:
  WorkgroupTrace* trace_of(std::uint64_t workgroup);
  const timing::Timing* timing_;
  std::vector<WorkgroupTrace> traces_;
  std::vector<SampledWork> counts_;
};

}  // namespace wavejit::simgpu::clock
