// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What launches before left in caches, where the user says that launches find them warm.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "simgpu/checkers/clock/trace.h"
#include "simgpu/machine/allocations/memory.h"

namespace wavejit::simgpu::clock {

struct LineRange {
  std::uint64_t first = 0;
  std::uint64_t end = 0;
  bool operator==(const LineRange&) const = default;
};

struct WarmCaches {
  bool last_level = false;  // has all that the launch reads
  // What the launch, or the one before it, writes: another die may have written what a workgroup reads there, so that
  // only the last level cache has it.
  std::vector<LineRange> written;
};

// What traces store to: in each allocation from the first line to the last, since workgroups without a trace write between.
// Runtimes cut small allocations out of one, so that all of it would be too much.
std::vector<LineRange> written_ranges(std::span<const WorkgroupTrace> traces, std::uint64_t line_bytes,
                                      const std::function<const Allocation*(std::uint64_t)>& find);

// Which of a workgroup's lines its die's L2 still has from an equal launch before: all that nobody writes, if what the
// die's workgroups touch fits; else none, since the least recently used ones have left. `sharers`: how many workgroups of
// the die read a line.
std::unordered_set<std::uint64_t> left_in_l2(const WarmCaches& warm, const std::unordered_set<std::uint64_t>& lines,
                                             const std::unordered_map<std::uint64_t, unsigned>& sharers,
                                             double workgroups_of_die, double l2_lines);

}  // namespace wavejit::simgpu::clock
