#pragma once
// Which workgroups of a launch are timed, and what their times say of all others.

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace wavejit::targets {
struct Target;
}

namespace wavejit::simgpu::clock {

/// Linear ids to run and to take down, ascending: pairs of neighbours on one die (whose common lines say what the
/// die's workgroups share), spread evenly over `first`, `first + step`, … (`count` of them). At most `most`.
[[nodiscard]] std::vector<uint64_t> choose_sample(uint64_t first, uint64_t step, uint64_t count, uint64_t most,
                                                  const targets::Target& target);
/// The same over a whole grid: each of its dimensions is cut into as many strata as there are pairs, and every stratum
/// of every dimension has one. Work that grows along one dimension (the query blocks of a causal mask) is seen
/// whatever the others are.
[[nodiscard]] std::vector<uint64_t> choose_sample(const std::array<uint32_t, 3>& grid, uint64_t most,
                                                  const targets::Target& target);

struct SampledTime {
  uint64_t workgroup = 0;
  uint64_t cycles = 0;  ///< from its first instruction to its last, beside the others of its compute unit
};

/// What every workgroup takes, by those that were timed: between the two nearest along the dimension that explains the
/// differences, in proportion; as the nearest in the grid where no dimension does.
class Durations {
 public:
  Durations(std::span<const SampledTime> sample, const std::array<uint32_t, 3>& grid);
  [[nodiscard]] uint64_t of(uint64_t workgroup) const;

 private:
  struct Known {
    std::array<double, 3> place;  // 0 to 1 of each dimension
    double cycles = 0;
  };
  [[nodiscard]] std::array<double, 3> place_of(uint64_t workgroup) const;
  std::array<uint32_t, 3> grid_;
  std::vector<Known> known_;  // where a dimension explains: ascending along it, no place twice
  int along_ = -1;
};

}  // namespace wavejit::simgpu::clock
