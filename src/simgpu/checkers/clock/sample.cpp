// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/checkers/clock/sample.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "boards/board.h"

namespace wavejit::simgpu::clock {
namespace {

// A step that visits all of `count` places in an order that is not theirs.
std::uint64_t scattering_step(std::uint64_t count, double part) {
  auto step = static_cast<std::uint64_t>(static_cast<double>(count) * part) + 1;
  while (std::gcd(step, count) != 1) ++step;
  return step;
}

// The part of what varies that a straight line over one dimension explains.
double explained(const std::vector<std::array<double, 2>>& points) {
  const auto count = static_cast<double>(points.size());
  std::array<double, 2> mean{};
  for (const auto& [x, y] : points) {
    mean[0] += x / count;
    mean[1] += y / count;
  }
  double xx = 0;
  double yy = 0;
  double xy = 0;
  for (const auto& [x, y] : points) {
    xx += (x - mean[0]) * (x - mean[0]);
    yy += (y - mean[1]) * (y - mean[1]);
    xy += (x - mean[0]) * (y - mean[1]);
  }
  return xx == 0 || yy == 0 ? 0 : xy * xy / (xx * yy);
}

// The part of what varies that differs between the places of one dimension and not within them. It says nothing where
// every point has a place of its own.
double explained_by_place(const std::vector<std::array<double, 2>>& points) {
  std::map<double, std::vector<double>> groups;
  double mean = 0;
  for (const auto& [x, y] : points) {
    groups[x].push_back(y);
    mean += y / static_cast<double>(points.size());
  }
  if (groups.size() < 2 || groups.size() == points.size()) return 0;
  double all = 0;
  double between = 0;
  for (const auto& [place, values] : groups) {
    double of_group = 0;
    for (const double value : values) {
      of_group += value / static_cast<double>(values.size());
      all += (value - mean) * (value - mean);
    }
    between += static_cast<double>(values.size()) * (of_group - mean) * (of_group - mean);
  }
  return all == 0 ? 0 : between / all;
}

// The part of what varies that the best dimension explains, and which it is.
template <typename Explain>
std::pair<double, int> best_dimension(const std::vector<std::array<double, 4>>& known, Explain explain) {
  std::pair<double, int> best = {0, -1};
  for (std::size_t dimension = 0; dimension < 3; ++dimension) {
    std::vector<std::array<double, 2>> points;
    points.reserve(known.size());
    for (const std::array<double, 4>& each : known) points.push_back({each[dimension], each[3]});
    if (const double part = explain(points); part > best.first) best = {part, static_cast<int>(dimension)};
  }
  return best;
}

constexpr double enough = 0.9;  // of what varies

std::array<double, 3> place_in(const std::array<std::uint32_t, 3>& grid, std::uint64_t workgroup) {
  const std::array<std::uint64_t, 3> place = {workgroup % grid[0], workgroup / grid[0] % grid[1],
                                              workgroup / grid[0] / grid[1]};
  std::array<double, 3> part{};
  for (std::size_t i = 0; i < part.size(); ++i) part[i] = static_cast<double>(place[i]) / grid[i];
  return part;
}

std::optional<std::uint64_t> next_row_across(std::uint64_t workgroup, const std::array<std::uint32_t, 3>& grid,
                                             std::uint64_t dies) {
  if (grid[0] == 1 || grid[0] % dies == 0 || grid[1] == 1) return std::nullopt;
  return workgroup / grid[0] % grid[1] + 1 < grid[1] ? workgroup + grid[0] : workgroup - grid[0];
}

// Kernels that plan for others, and other launches of a few workgroups whose work differs.
std::vector<Seed> every_workgroup(const std::array<std::uint32_t, 3>& grid, std::uint64_t all,
                                  const boards::Board& target) {
  std::vector<Seed> seeds;
  seeds.reserve(all);
  for (std::uint64_t id = 0; id < all; ++id) seeds.push_back(with_neighbours(id, grid, target));
  return seeds;
}

}  // namespace

std::uint64_t turns_of_row(const std::array<std::uint32_t, 3>& grid, const boards::Board& target) {
  return grid[0] / std::gcd(std::uint64_t{grid[0]}, static_cast<std::uint64_t>(target.xcds));
}

// Where the next of a die is at the same x already, one neighbour says all.
Seed with_neighbours(std::uint64_t workgroup, const std::array<std::uint32_t, 3>& grid, const boards::Board& target) {
  const auto dies = static_cast<std::uint64_t>(target.xcds);
  const std::uint64_t all = std::uint64_t{grid[0]} * grid[1] * grid[2];
  const std::uint64_t to_row = turns_of_row(grid, target) * dies;  // ids
  const std::uint64_t rows_on = to_row / grid[0];
  const std::uint64_t y = workgroup / grid[0] % grid[1];
  std::optional<std::uint64_t> row;
  if (y + rows_on < grid[1]) {
    row = workgroup + to_row;
  } else if (y >= rows_on) {
    row = workgroup - to_row;
  }
  Seed seed{.workgroup = workgroup, .across_rows = next_row_across(workgroup, grid, dies)};
  if (to_row != dies && rows_on < grid[1]) seed.row = row;
  if (to_row == dies) {
    seed.next = row ? row : workgroup + dies < all ? std::optional(workgroup + dies) : std::nullopt;
  } else {  // in its row: heads of one group may be what a die has of a row
    const bool last = workgroup % to_row / dies + 1 == to_row / dies;
    const std::uint64_t next = last ? workgroup - dies : workgroup + dies;
    if (next < all) seed.next = next;
  }
  // Side by side in the first dimension that has more than one place.
  const std::uint64_t size = grid[0] > 1 ? grid[0] : grid[1] > 1 ? grid[1] : grid[2];
  const std::uint64_t place = workgroup % size;
  // The other of a pair: the heads of a group, two or four of them, lie in the same pair or pairs.
  const std::uint64_t other = place ^ 1U;
  if (size > 1) seed.across = other < size ? workgroup - place + other : workgroup - 1;
  return seed;
}

std::vector<Seed> choose_sample(std::uint64_t first, std::uint64_t step, std::uint64_t count, std::uint64_t most,
                                const boards::Board& target) {
  std::vector<Seed> chosen;
  const auto dies = static_cast<std::uint64_t>(target.xcds);
  const std::uint64_t seeds = std::min(std::max<std::uint64_t>(most / 2, 1), count);
  for (std::uint64_t i = 0; i < seeds; ++i) {
    const std::uint64_t place = ((2 * i) + 1) * count / (2 * seeds);
    Seed seed{.workgroup = first + (place * step)};
    // Neighbours on a die are as many ids apart as there are dies.
    if (step == 1 && most > 1 && place + dies < count) seed.next = seed.workgroup + dies;
    chosen.push_back(seed);
  }
  return chosen;
}

std::vector<Seed> choose_sample(const std::array<std::uint32_t, 3>& grid, std::uint64_t most,
                                const boards::Board& target) {
  const std::uint64_t all = std::uint64_t{grid[0]} * grid[1] * grid[2];
  if (all == 0) return {};
  if (all <= most) return every_workgroup(grid, all, target);
  constexpr std::uint64_t with_its_neighbours = 4;
  const std::uint64_t seeds = std::min(std::max<std::uint64_t>(most / with_its_neighbours, 1), all);
  constexpr double golden = 0.618;
  const std::array<std::uint64_t, 3> steps = {scattering_step(seeds, golden), 1, scattering_step(seeds, 1 - golden)};
  std::vector<Seed> chosen;
  for (std::uint64_t i = 0; i < seeds; ++i) {
    std::array<std::uint64_t, 3> place{};
    for (std::size_t dimension = 0; dimension < place.size(); ++dimension) {
      const std::uint64_t stratum = i * steps[dimension] % seeds;
      place[dimension] = ((2 * stratum) + 1) * grid[dimension] / (2 * seeds);
    }
    const std::uint64_t id = place[0] + (grid[0] * (place[1] + (grid[1] * place[2])));
    if (std::ranges::contains(chosen, id, &Seed::workgroup)) continue;
    Seed seed = with_neighbours(id, grid, target);
    if (most < 3) seed.row.reset();
    if (most < with_its_neighbours) {
      seed.across.reset();
      seed.across_rows.reset();
    }
    if (most < 2) seed.next.reset();
    chosen.push_back(seed);
  }
  return chosen;
}

std::vector<std::uint64_t> workgroups_of(std::span<const Seed> seeds) {
  std::set<std::uint64_t> ids;
  for (const Seed& seed : seeds) {
    ids.insert(seed.workgroup);
    for (const std::optional<std::uint64_t>& neighbour : {seed.next, seed.row, seed.across, seed.across_rows})
      if (neighbour) ids.insert(*neighbour);
  }
  return {ids.begin(), ids.end()};
}

Durations::Durations(std::span<const SampledTime> sample, const std::array<std::uint32_t, 3>& grid) : grid_(grid) {
  for (const SampledTime& time : sample) {
    known_.push_back({place_of(time.workgroup), static_cast<double>(time.cycles)});
  }
  std::vector<std::array<double, 4>> points;
  points.reserve(known_.size());
  for (const Known& known : known_) points.push_back({known.place[0], known.place[1], known.place[2], known.cycles});
  if (const auto [part, dimension] = best_dimension(points, explained); part >= enough) along_ = dimension;
  if (along_ < 0) grouped_by_ = best_dimension(points, explained_by_place).second;
  if (along_ < 0) return;
  const auto axis = static_cast<std::size_t>(along_);
  std::ranges::sort(known_, {}, [&](const Known& known) { return known.place[axis]; });
  std::vector<Known> merged;
  for (std::size_t i = 0; i < known_.size();) {
    std::size_t end = i;
    double sum = 0;
    for (; end < known_.size() && known_[end].place[axis] == known_[i].place[axis]; ++end) sum += known_[end].cycles;
    merged.push_back({known_[i].place, sum / static_cast<double>(end - i)});
    i = end;
  }
  known_ = std::move(merged);
  if (known_.size() < 2) along_ = -1;
}

std::array<double, 3> Durations::place_of(std::uint64_t workgroup) const { return place_in(grid_, workgroup); }

std::uint64_t Durations::of(std::uint64_t workgroup) const {
  const std::array<double, 3> place = place_of(workgroup);
  if (along_ >= 0) {
    const auto axis = static_cast<std::size_t>(along_);
    // The pair around the place, or the outermost pair beyond it.
    std::size_t right = 1;
    while (right + 1 < known_.size() && known_[right].place[axis] < place[axis]) ++right;
    const Known& before = known_[right - 1];
    const Known& after = known_[right];
    const double part = (place[axis] - before.place[axis]) / (after.place[axis] - before.place[axis]);
    return static_cast<std::uint64_t>(std::max(before.cycles + (part * (after.cycles - before.cycles)), 1.0));
  }
  double nearest = std::numeric_limits<double>::infinity();
  double cycles = 0;
  for (const Known& known : known_) {
    double distance = 0;
    for (std::size_t i = 0; i < place.size(); ++i) {
      constexpr double before_all = 1e6;  // the dimension that tells most
      const double weight = static_cast<int>(i) == grouped_by_ ? before_all : 1;
      distance += weight * (place[i] - known.place[i]) * (place[i] - known.place[i]);
    }
    if (distance >= nearest) continue;
    nearest = distance;
    cycles = known.cycles;
  }
  return static_cast<std::uint64_t>(cycles);
}

}  // namespace wavejit::simgpu::clock
