// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/checkers/clock/survey.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <utility>

namespace wavejit::simgpu::clock {
namespace {

constexpr std::uint64_t most_of_a_line = 64;
constexpr std::uint64_t fewest_of_a_line = 9;
constexpr std::uint64_t fewest_of_lattice = 64;
constexpr std::uint64_t most_of_lattice = 1024;
constexpr std::uint64_t most_instructions = 200'000'000;  // of all that are counted: some seconds of this host
constexpr std::size_t most_timed = 12;

// The middles of `count` strata; the first and the last are moved to the two ends, because places that differ from the
// others are mostly at an end.
std::vector<std::uint32_t> strata(std::uint32_t size, std::uint64_t count) {
  const std::uint64_t places = std::min<std::uint64_t>(size, std::max<std::uint64_t>(count, 2));
  std::vector<std::uint32_t> all;
  all.reserve(places);
  for (std::uint64_t i = 0; i < places; ++i)
    all.push_back(static_cast<std::uint32_t>(((2 * i) + 1) * size / (2 * places)));
  all.front() = 0;
  all.back() = size - 1;
  return all;
}

constexpr double of_equal_work = 1.1;
constexpr double as_expected = 0.1;  // of the most work

// Rows, heads and sequences: who has fewer rows leaves. So few instructions of a workgroup are not worth its start.
bool ended_at_once(std::uint64_t instructions, const std::array<std::uint32_t, 3>& grid) {
  constexpr std::uint64_t few = 2048;
  return instructions < few && grid[1] > 1 && grid[2] > 1;
}

bool alike(std::uint64_t a, std::uint64_t b, double factor) {
  return static_cast<double>(std::max(a, b)) <= factor * static_cast<double>(std::min(a, b));
}

}  // namespace

std::vector<std::uint64_t> Survey::ends(const std::array<std::uint32_t, 3>& grid,
                                        std::span<const std::uint64_t> sample) {
  const std::uint64_t all = std::uint64_t{grid[0]} * grid[1] * grid[2];
  std::vector<std::uint64_t> ids;
  for (const std::uint64_t id : {std::uint64_t{0}, all - 1})
    if (all != 0 && !std::ranges::contains(sample, id) && !std::ranges::contains(ids, id)) ids.push_back(id);
  return ids;
}

bool Survey::needed(std::span<const SampledWork> sample, std::span<const SampledWork> ends,
                    const std::array<std::uint32_t, 3>& grid) {
  if (sample.empty()) return false;
  const auto [least, most] = std::ranges::minmax(sample, {}, &SampledWork::instructions);
  const bool some_are_longer =
      std::ranges::any_of(ends, [&](const SampledWork& end) { return !ended_at_once(end.instructions, grid); });
  if (ended_at_once(most.instructions, grid) && (sample.size() > 1 || some_are_longer)) return true;
  std::vector<SampledTime> work;
  work.reserve(sample.size());
  for (const SampledWork& each : sample) work.push_back({.workgroup = each.workgroup, .cycles = each.instructions});
  const Durations expected(work, grid);
  for (const SampledWork& end : ends) {
    const auto instructions = static_cast<double>(end.instructions);
    const double difference = std::abs(instructions - static_cast<double>(expected.of(end.workgroup)));
    if (difference > as_expected * std::max(instructions, static_cast<double>(most.instructions))) return true;
  }
  return !alike(least.instructions, most.instructions, of_equal_work) && !expected.follow_a_dimension();
}

std::uint64_t Survey::id_of(const std::array<std::uint32_t, 3>& place) const {
  return place[0] + (grid_[0] * (place[1] + (std::uint64_t{grid_[1]} * place[2])));
}

std::array<std::uint32_t, 3> Survey::place_of(std::uint64_t workgroup) const {
  return {static_cast<std::uint32_t>(workgroup % grid_[0]), static_cast<std::uint32_t>(workgroup / grid_[0] % grid_[1]),
          static_cast<std::uint32_t>(workgroup / grid_[0] / grid_[1])};
}

std::vector<std::uint64_t> Survey::ids_of(const Places& places) const {
  std::vector<std::uint64_t> ids;
  for (const std::uint32_t z : places[2])
    for (const std::uint32_t y : places[1])
      for (const std::uint32_t x : places[0]) ids.push_back(id_of({x, y, z}));
  return ids;
}

// Along each dimension, through the workgroup that did most, and where one of the others is at its end: what few
// sequences have shows only there.
std::vector<Survey::Line> Survey::lines() const {
  std::vector<Line> all;
  const auto add = [&](std::size_t along, const std::array<std::uint32_t, 3>& place) {
    Line line{.along = along, .places = {std::vector{place[0]}, std::vector{place[1]}, std::vector{place[2]}}};
    line.places[along] = strata(grid_[along], places_of_a_line_);
    all.push_back(std::move(line));
  };
  for (std::size_t along = 0; along < grid_.size(); ++along) {
    auto place = place_of(most_);
    add(along, place);
    for (std::size_t other = 0; other < grid_.size(); ++other) {
      if (other == along) continue;
      const std::uint32_t here = std::exchange(place[other], grid_[other] - 1);
      add(along, place);
      place[other] = here;
    }
  }
  return all;
}

// Dimensions along which work stays the same have one place. The shortest of the others are counted whole, before the
// longer ones share what is left.
void Survey::lay_lattice() {
  const auto place = place_of(most_);
  std::vector<std::size_t> varying;
  double mean = 0;
  for (const auto& [id, work] : counted_) mean += static_cast<double>(work) / static_cast<double>(counted_.size());
  std::array<bool, 3> varies{};
  for (const Line& line : lines()) {
    std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
    std::uint64_t most = 0;
    for (const std::uint64_t id : ids_of(line.places)) {
      least = std::min(least, counted_.at(id));
      most = std::max(most, counted_.at(id));
    }
    constexpr double same = 1.02;
    if (!alike(least, most, same)) varies[line.along] = true;
  }
  for (std::size_t dimension = 0; dimension < place.size(); ++dimension) {
    lattice_[dimension] = {place[dimension]};
    if (varies[dimension]) varying.push_back(dimension);
  }
  std::ranges::stable_sort(varying, {}, [&](std::size_t dimension) { return grid_[dimension]; });
  most_of_lattice_ = static_cast<std::uint64_t>(std::clamp<double>(
      static_cast<double>(most_instructions) / std::max(mean, 1.0), fewest_of_lattice, most_of_lattice));
  double places = 1;
  for (const std::size_t dimension : varying) places *= grid_[dimension];
  // Where not all places can be counted, half of them are kept for the neighbours that differ.
  auto left = static_cast<double>(most_of_lattice_);
  if (places > left) left /= 2;
  for (std::size_t i = 0; i < varying.size(); ++i) {
    const double part = std::pow(left, 1.0 / static_cast<double>(varying.size() - i));
    lattice_[varying[i]] = strata(grid_[varying[i]], static_cast<std::uint64_t>(std::lround(part)));
    left /= static_cast<double>(lattice_[varying[i]].size());
  }
}

std::uint64_t Survey::lattice_size() const {
  return std::uint64_t{lattice_[0].size()} * lattice_[1].size() * lattice_[2].size();
}

bool Survey::refine_lattice() {
  struct Gap {
    std::size_t dimension = 0;
    std::uint32_t middle = 0;
    double difference = 0;  // instructions
  };
  std::vector<Gap> gaps;
  double most = 1;
  for (const std::uint64_t id : ids_of(lattice_)) most = std::max(most, static_cast<double>(counted_.at(id)));
  for (std::size_t dimension = 0; dimension < lattice_.size(); ++dimension) {
    const std::vector<std::uint32_t>& places = lattice_[dimension];
    for (std::size_t i = 0; i + 1 < places.size(); ++i) {
      if (places[i + 1] - places[i] < 2) continue;
      Gap gap{.dimension = dimension, .middle = places[i] + ((places[i + 1] - places[i]) / 2)};
      Places before = lattice_;
      Places after = lattice_;
      before[dimension] = {places[i]};
      after[dimension] = {places[i + 1]};
      const std::vector<std::uint64_t> ids_before = ids_of(before);
      const std::vector<std::uint64_t> ids_after = ids_of(after);
      for (std::size_t other = 0; other < ids_before.size(); ++other) {
        const auto a = static_cast<double>(counted_.at(ids_before[other]));
        const auto b = static_cast<double>(counted_.at(ids_after[other]));
        gap.difference = std::max(gap.difference, std::abs(a - b));
      }
      constexpr double a_jump = 0.05;  // of the most work; what grows steadily is in proportion between two places
      if (gap.difference > a_jump * most) gaps.push_back(gap);
    }
  }
  std::ranges::stable_sort(gaps, std::greater<>(), &Gap::difference);
  bool refined = false;
  for (const Gap& gap : gaps) {
    std::vector<std::uint32_t>& places = lattice_[gap.dimension];
    if (lattice_size() / places.size() * (places.size() + 1) > most_of_lattice_) continue;
    places.insert(std::ranges::lower_bound(places, gap.middle), gap.middle);
    refined = true;
  }
  return refined;
}

std::vector<std::uint64_t> Survey::next(std::span<const SampledWork> work) {
  for (const SampledWork& each : work) counted_[each.workgroup] = each.instructions;
  const auto not_counted = [&](std::vector<std::uint64_t> ids) {
    std::erase_if(ids, [&](std::uint64_t id) { return counted_.contains(id); });
    std::ranges::sort(ids);
    ids.erase(std::ranges::unique(ids).begin(), ids.end());
    return ids;
  };
  std::vector<std::uint64_t> ids;
  if (stage_ == Stage::sample) {
    stage_ = Stage::lines;
    const SampledWork most = std::ranges::max(work, {}, &SampledWork::instructions);
    most_ = most.workgroup;
    // The first rows are there in every sequence.
    if (ended_at_once(most.instructions, grid_)) most_ = id_of({place_of(most_)[0], 0, place_of(most_)[2]});
    constexpr std::uint64_t count_of_lines = 9;
    places_of_a_line_ = std::clamp(most_instructions / count_of_lines / std::max<std::uint64_t>(most.instructions, 1),
                                   fewest_of_a_line, most_of_a_line);
    ids.push_back(most_);
    for (const Line& line : lines()) std::ranges::copy(ids_of(line.places), std::back_inserter(ids));
    ids = not_counted(std::move(ids));
    if (!ids.empty()) return ids;
  }
  if (stage_ == Stage::lines) {
    stage_ = Stage::lattice;
    lay_lattice();
    ids = not_counted(ids_of(lattice_));
  }
  while (ids.empty() && refine_lattice()) ids = not_counted(ids_of(lattice_));
  return ids;
}

bool Survey::found_nothing() const {
  const auto by_work = [](const auto& a, const auto& b) { return a.second < b.second; };
  const auto [least, most] = std::minmax_element(counted_.begin(), counted_.end(), by_work);
  return alike(least->second, most->second, of_equal_work);
}

std::uint64_t Survey::work_of(std::uint64_t workgroup) const {
  std::array<std::uint32_t, 3> place = place_of(workgroup);
  for (std::size_t dimension = 0; dimension < place.size(); ++dimension) {
    const std::vector<std::uint32_t>& places = lattice_[dimension];
    const auto after = std::ranges::lower_bound(places, place[dimension]);
    if (after == places.end()) {
      place[dimension] = places.back();
    } else if (after != places.begin() && place[dimension] - *(after - 1) < *after - place[dimension]) {
      place[dimension] = *(after - 1);
    } else {
      place[dimension] = *after;
    }
  }
  return counted_.at(id_of(place));
}

std::vector<Seed> Survey::seeds(const boards::Board& target) const {
  std::vector<SampledWork> known;
  for (const std::uint64_t id : ids_of(lattice_)) known.push_back({.workgroup = id, .instructions = counted_.at(id)});
  std::ranges::stable_sort(known, {}, &SampledWork::instructions);
  // For each amount of work the workgroup in the middle, for the least and the most themselves; then some of the
  // amounts, evenly.
  constexpr double same = 1.05;
  std::vector<std::uint64_t> amounts;
  for (std::size_t begin = 0; begin < known.size();) {
    std::size_t end = begin;
    while (end < known.size() && alike(known[begin].instructions, known[end].instructions, same)) ++end;
    amounts.push_back(known[begin + ((end - begin - 1) / 2)].workgroup);
    begin = end;
  }
  if (amounts.size() > 1) {
    amounts.front() = known.front().workgroup;
    amounts.back() = known.back().workgroup;
  }
  std::vector<Seed> chosen;
  const std::size_t count = std::min(amounts.size(), most_timed);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t id = amounts[count == 1 ? 0 : i * (amounts.size() - 1) / (count - 1)];
    Seed seed = with_neighbours(id, grid_, target);
    constexpr double as_neighbour = 1.1;
    // Units of lists side by side share what they both name, and name a few blocks more or less.
    constexpr double as_sharer = 1.5;
    const auto is_within = [&](std::optional<std::uint64_t> neighbour, double most) {
      return neighbour && alike(work_of(*neighbour), work_of(id), most);
    };
    seed.next_is_alike = is_within(seed.next, as_neighbour);
    seed.row_is_alike = is_within(seed.row, as_neighbour);
    for (std::optional<std::uint64_t>* neighbour : {&seed.next, &seed.row, &seed.across, &seed.across_rows})
      if (!is_within(*neighbour, as_sharer)) neighbour->reset();
    chosen.push_back(seed);
  }
  return chosen;
}

DurationsByWork::DurationsByWork(std::span<const SampledTime> sample, const Survey& survey) : survey_(&survey) {
  for (const SampledTime& time : sample)
    known_.push_back(
        {.work = static_cast<double>(survey.work_of(time.workgroup)), .cycles = static_cast<double>(time.cycles)});
  std::ranges::stable_sort(known_, {}, &Known::work);
  known_.erase(std::ranges::unique(known_, {}, &Known::work).begin(), known_.end());
}

std::uint64_t DurationsByWork::of(std::uint64_t workgroup) const {
  const auto work = static_cast<double>(survey_->work_of(workgroup));
  const auto after = std::ranges::lower_bound(known_, work, {}, &Known::work);
  if (after == known_.end()) return static_cast<std::uint64_t>(known_.back().cycles);
  if (after == known_.begin() || after->work == work) return static_cast<std::uint64_t>(after->cycles);
  const Known& before = *(after - 1);
  const double part = (work - before.work) / (after->work - before.work);
  return static_cast<std::uint64_t>(before.cycles + (part * (after->cycles - before.cycles)));
}

}  // namespace wavejit::simgpu::clock
