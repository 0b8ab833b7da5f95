// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which workgroups of a launch are timed, and what their times say of all others.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace wavejit::boards {
struct Board;
}

namespace wavejit::simgpu::clock {

// A workgroup that is timed, by its linear id, and others of its die whose lines say what the die's workgroups share.
struct Seed {
  std::uint64_t workgroup = 0;
  std::optional<std::uint64_t> next =
      {};  // the one that the die gets after it, or before it where that one is in its row
  // One at the same x and z. Where a die has several x, a row of a grid of heads by query blocks has other keys for
  // each, and only the next rows have the same.
  std::optional<std::uint64_t> row = {};
  // The one on the die beside it: what both read is fetched from memory once, and found in the last level cache then.
  std::optional<std::uint64_t> across = {};
  // The one at the same x in the next row, where that row's workgroups of this x are on another die: nine heads go round
  // eight dies, and each head is read by all of them.
  std::optional<std::uint64_t> across_rows = {};
  // Neighbours of other work share lines, and are not what stands beside the workgroup on its compute unit.
  bool next_is_alike = true;
  bool row_is_alike = true;
};

// Workgroups go round the dies. After this many workgroups of its own, a die gets the same x again.
std::uint64_t turns_of_row(const std::array<std::uint32_t, 3>& grid, const boards::Board& target);

// At most `most` / 2 seeds, each with one neighbour at the most, spread evenly over `first`, `first + step`, … (`count` of
// them).
std::vector<Seed> choose_sample(std::uint64_t first, std::uint64_t step, std::uint64_t count, std::uint64_t most,
                                const boards::Board& target);
// A sample of a whole grid: `most` / 4 seeds with their neighbours. Each of its dimensions is cut into as many strata as
// there are seeds, and every stratum of every dimension has one; of a grid of at most `most` workgroups all are seeds.
// Work that grows along one dimension (the query blocks of a causal mask) is seen whatever the others are.
std::vector<Seed> choose_sample(const std::array<std::uint32_t, 3>& grid, std::uint64_t most,
                                const boards::Board& target);
// A workgroup with its neighbours, as a seed of a sample has them.
Seed with_neighbours(std::uint64_t workgroup, const std::array<std::uint32_t, 3>& grid, const boards::Board& target);
// Linear ids to run and to take down, ascending, none twice.
std::vector<std::uint64_t> workgroups_of(std::span<const Seed> seeds);

// What a workgroup of the sample did.
struct SampledWork {
  std::uint64_t workgroup = 0;
  std::uint64_t instructions = 0;
};

struct SampledTime {
  std::uint64_t workgroup = 0;
  std::uint64_t cycles = 0;  // from its first instruction to its last, beside the others of its compute unit
};

// What every workgroup takes, by those that were timed. Where one dimension explains the differences: in proportion
// between the two nearest along it. Where none does: what the nearest one in the grid takes; nearest along the
// dimension whose places differ most from each other comes first.
class Durations {
 public:
  Durations(std::span<const SampledTime> sample, const std::array<std::uint32_t, 3>& grid);
  std::uint64_t of(std::uint64_t workgroup) const;
  bool follow_a_dimension() const { return along_ >= 0; }

 private:
  struct Known {
    std::array<double, 3> place;  // 0 to 1 of each dimension
    double cycles = 0;
  };
  std::array<double, 3> place_of(std::uint64_t workgroup) const;
  std::array<std::uint32_t, 3> grid_;
  std::vector<Known> known_;  // where a dimension explains: ascending along it, no place twice
  int along_ = -1;
  int grouped_by_ = -1;
};

}  // namespace wavejit::simgpu::clock
