// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The other readers of a sampled workgroup's lines, as far as traces of its neighbours show them: what a compute
// unit pays for in full, what its die fetches once for several workgroups, and what comes once for several dies.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "simgpu/checkers/clock/launch_memory.h"
#include "simgpu/checkers/clock/line_range.h"
#include "simgpu/checkers/clock/memory_path.h"
#include "simgpu/checkers/clock/sample.h"
#include "simgpu/checkers/clock/trace.h"

namespace wavejit::boards {
struct Board;
}

namespace wavejit::simgpu::clock {

struct GridShape {
  std::array<std::uint32_t, 3> workgroups = {1, 1, 1};
  unsigned waves = 1;  // of a workgroup
  unsigned vgprs = 0;
  unsigned lds_bytes = 0;
  std::uint64_t total() const { return std::uint64_t{workgroups[0]} * workgroups[1] * workgroups[2]; }
};

// Compute units that share their waves are one.
std::uint64_t units_of(const boards::Board& target);
// What else uses the memory of one of a launch's compute units, as far as the number of its workgroups says.
Neighbours neighbours_of(const boards::Board& target, std::uint64_t workgroups, unsigned resident);

// What the traces of a launch say about shared lines. The traces and the memory have to outlive it.
class LaunchSharing {
 public:
  // `resident`: workgroups of a compute unit. `spread`: the traced workgroups are all, or seeds in the midst of equal
  // parts with their neighbours, and were not chosen by their work, so that they show what the launch touches.
  LaunchSharing(const boards::Board& target, const GridShape& shape, const timing::MemoryRules& rules,
                std::span<const Seed> seeds, std::span<const WorkgroupTrace> traces, bool spread,
                const LaunchMemory& memory, unsigned resident);

  // Null where the workgroup was not traced.
  const WorkgroupTrace* trace_of(std::optional<std::uint64_t> workgroup) const;
  // The traces of a compute unit that has the seed's workgroup, and what is like it, beside it.
  std::vector<const WorkgroupTrace*> residents_of(const Seed& seed, unsigned resident) const;
  // What else uses the memory of that compute unit. `alike`: how many workgroups do as much as the seed's.
  Neighbours neighbours_of_unit(const Seed& seed, std::span<const WorkgroupTrace* const> residents,
                                std::uint64_t alike) const;
  // The part of a workgroup's lines that others of its die read, too; none where it has no neighbour.
  std::optional<double> shared_part(const Seed& seed) const;

 private:
  using Lines = std::unordered_set<std::uint64_t>;
  // Which neighbours of a workgroup read a line that it reads.
  enum Neighbour : unsigned {
    in_next = 1U,        // the next of the die, in the same row or nearly
    in_row = 2U,         // the next row's of the die: the same x and z
    in_next_plane = 4U,  // the next of the die, which has another z
    across_x = 8U,       // the one beside it, on another die
    across_rows = 16U,   // the next row's, on another die
  };
  using Seen = std::unordered_map<std::uint64_t, unsigned>;  // neighbours by line
  // How many read a line, in the mean: workgroups of a die at a time, and dies.
  struct Sharers {
    double of_die = 1;
    double dies = 1;
  };
  struct Readers {
    ReadersByLine die;
    ReadersByLine dies;
  };

  Seen seen_by_neighbours(const Seed& seed) const;
  void take_from_others(std::vector<Seen>& all, std::span<const Seed> seeds) const;
  Sharers of_group(unsigned seen, double readers) const;
  Sharers sharers_of(unsigned seen, double readers) const;
  Readers readers_of(const Seen& seen, const Lines& lines, double workgroups) const;
  double lines_read(std::uint64_t base, const LinesOfAllocation& here) const;
  void add_lines_beside(Readers& readers, const Lines& lines, const Lines& beside) const;
  void add_gathered(ReadersByLine& readers, const PartsByLine& lines, double of_die) const;
  std::map<std::uint64_t, LinesOfAllocation> by_allocation_of(std::span<const std::uint64_t> lines) const;

  const boards::Board* target_;
  const GridShape* shape_;
  const timing::MemoryRules* rules_;
  std::span<const WorkgroupTrace> traces_;
  const LaunchMemory* memory_;
  bool spread_;
  double running_ = 1;                                       // workgroups that the GPU has at a time
  bool rows_side_by_side_ = false;                           // on a compute unit
  std::map<std::uint64_t, LineRange> spans_;                 // what traces touch, by the allocation's base
  double beyond_spans_ = 1;                                  // what the launch touches over that
  std::unordered_map<std::uint64_t, Seen> of_seeds_;         // by the seed's workgroup
  std::unordered_map<std::uint64_t, double> lines_by_base_;  // of a traced workgroup, in the mean
};

}  // namespace wavejit::simgpu::clock
