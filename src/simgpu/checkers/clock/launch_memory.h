// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a launch finds when it begins: allocations, and what launches before left of them in caches.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "simgpu/checkers/clock/line_range.h"
#include "simgpu/checkers/clock/trace.h"
#include "simgpu/machine/allocations/memory.h"
#include "timing/timing.h"

namespace wavejit::simgpu::clock {

using FindAllocation = std::function<const Allocation*(std::uint64_t address)>;

// Lines of one allocation, in the order in which they were given.
struct LinesOfAllocation {
  const Allocation* holder = nullptr;
  std::vector<std::uint64_t> lines;
};
// By the allocation's base; lines of no allocation are left out.
std::map<std::uint64_t, LinesOfAllocation> by_allocation(std::span<const std::uint64_t> lines, std::uint64_t line_bytes,
                                                         const FindAllocation& find);

struct LaunchMemory {
  FindAllocation find;
  bool warm = false;  // the last level cache has all that the launch reads
  // What the last level cache has otherwise: what launches before wrote. Sorted and apart.
  std::vector<LineRange> in_last_level;
  // What the launch, or the one before it, writes: another die may have written what a workgroup reads there, so that
  // only the last level cache has it. Sorted and apart.
  std::vector<LineRange> written;
};

// What a launch wrote. Freed memory is forgotten: its address may be another allocation's.
struct WrittenRange {
  std::uint64_t allocation = 0;  // its serial number
  int device = 0;                // whose memory it is
  LineRange lines;
  std::uint64_t beside = 0;  // lines on either side that workgroups without a trace may have written
};
using Writes = std::vector<WrittenRange>;

// What traces of a launch store to, and what workgroups without a trace write between and beside it: no more than
// `workgroups` like the traced ones write in all. Runtimes and frameworks cut small allocations out of large ones, so
// that an allocation as a whole would be too much.
Writes written_by(std::span<const WorkgroupTrace> traces, std::uint64_t workgroups, std::uint64_t line_bytes,
                  const FindAllocation& find);

// The lines alone, of several launches; sorted and apart.
std::vector<LineRange> lines_of(std::span<const Writes> launches);

// Launches of one queue, which follow each other. What others wrote is not counted: when they did is up to the host.
class WriteLog {
 public:
  void add(Writes written);
  const Writes& latest() const { return latest_; }
  // What the last level cache of a device has of it: of the latest writes all that fits.
  std::vector<LineRange> left_in_last_level(int device, const timing::MemoryRules& rules,
                                            const FindAllocation& find) const;

 private:
  Writes latest_;                   // of the launch before
  std::deque<WrittenRange> every_;  // the latest first
};

// Lines that the workgroups of a compute unit read, and which part of these workgroups reads each.
using PartsByLine = std::unordered_map<std::uint64_t, double>;

// How many read a line, workgroups of a die or dies: in the mean, which is no whole number where ten go round eight.
using ReadersByLine = std::unordered_map<std::uint64_t, double>;

// Which of these lines their die's L2 still has from an equal launch before: all that nobody writes, if what the die's
// workgroups touch fits; else none, since the least recently used ones have left. `sharers`: how many workgroups of the
// die read a line.
std::unordered_set<std::uint64_t> left_in_l2(const LaunchMemory& memory, const PartsByLine& lines,
                                             const ReadersByLine& sharers, double workgroups_of_die, double l2_lines);

}  // namespace wavejit::simgpu::clock
