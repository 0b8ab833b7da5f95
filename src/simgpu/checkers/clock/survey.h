// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Launches whose workgroups differ in work where no dimension of the grid says how: sequences of different lengths.
// Their instructions are counted over a lattice of the grid, workgroups of each amount of work are timed, and all
// others take what their amount takes.
//
//   needed       the sample's workgroups differ, and no straight line over a dimension explains it; or the launch's
//                first and last do other work than the sample says; or all ended at once, as those do that are there
//                for the rows of longer sequences
//   counts       1. along each dimension, its ends among the places: those that change nothing fall out
//                2. over all places of the others, or as many as a launch may cost
//                3. halfway between neighbours that differ, until they stand side by side: where a few sequences end in
//                   a table that has room for long ones
//   seeds        workgroups of each amount of work, to be timed
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "simgpu/checkers/clock/sample.h"

namespace wavejit::simgpu::clock {

class Survey {
 public:
  explicit Survey(const std::array<std::uint32_t, 3>& grid) : grid_(grid) {}

  // Linear ids that are counted beside every sample, as far as it has not got them: at one end of all dimensions each.
  static std::vector<std::uint64_t> ends(const std::array<std::uint32_t, 3>& grid,
                                         std::span<const std::uint64_t> sample);
  // Whether the sample says too little about a launch.
  static bool needed(std::span<const SampledWork> sample, std::span<const SampledWork> ends,
                     const std::array<std::uint32_t, 3>& grid);

  // Linear ids of the workgroups to count next, ascending; none when the survey knows enough. `work`: the counts for
  // the ids that the last call returned; in the first call those of the sample and of both ends.
  std::vector<std::uint64_t> next(std::span<const SampledWork> work);
  // Whether what was counted is all alike: the sample says enough.
  bool found_nothing() const;
  // Those to be timed, when nothing is left to count: least and most work among them. Neighbours that have quite other
  // work are none.
  std::vector<Seed> seeds(const boards::Board& target) const;

  // Instructions of a workgroup: of the nearest that was counted.
  std::uint64_t work_of(std::uint64_t workgroup) const;

 private:
  enum class Stage : std::uint8_t { sample, lines, lattice };
  using Places = std::array<std::vector<std::uint32_t>, 3>;  // of each dimension, ascending
  struct Line {
    std::size_t along = 0;
    Places places;
  };
  std::uint64_t id_of(const std::array<std::uint32_t, 3>& place) const;
  std::array<std::uint32_t, 3> place_of(std::uint64_t workgroup) const;
  std::vector<std::uint64_t> ids_of(const Places& places) const;
  std::vector<Line> lines() const;
  void lay_lattice();
  // Puts places between neighbours of the lattice that differ; whether there were any, and room for them.
  bool refine_lattice();
  std::uint64_t lattice_size() const;

  std::array<std::uint32_t, 3> grid_;
  Stage stage_ = Stage::sample;
  std::map<std::uint64_t, std::uint64_t> counted_;
  std::uint64_t most_ = 0;  // the workgroup that did most of the sample, or is said to
  std::uint64_t places_of_a_line_ = 0;
  Places lattice_;
  std::uint64_t most_of_lattice_ = 0;
};

// What a workgroup takes by its work: in proportion between those that were timed.
class DurationsByWork {
 public:
  DurationsByWork(std::span<const SampledTime> sample, const Survey& survey);
  std::uint64_t of(std::uint64_t workgroup) const;

 private:
  struct Known {
    double work = 0;
    double cycles = 0;
  };
  const Survey* survey_;
  std::vector<Known> known_;  // ascending by work, no work twice
};

}  // namespace wavejit::simgpu::clock
