// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/checkers/clock/sharing.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <ranges>

#include "boards/board.h"

namespace wavejit::simgpu::clock {
namespace {

std::unordered_set<std::uint64_t> lines_of(const WorkgroupTrace& trace) {
  std::unordered_set<std::uint64_t> lines;
  for (const WaveTrace& wave : trace.waves) lines.insert(wave.lines.begin(), wave.lines.end());
  return lines;
}

std::vector<std::uint64_t> as_list(const std::unordered_set<std::uint64_t>& lines) {
  return {lines.begin(), lines.end()};
}

unsigned count_of(const std::unordered_map<std::uint64_t, unsigned>& readers, std::uint64_t line) {
  const auto found = readers.find(line);
  return found == readers.end() ? 1U : found->second;
}

// The median of how many read each of these lines, of which there is one at least.
unsigned median_readers(const std::unordered_map<std::uint64_t, unsigned>& readers,
                        std::span<const std::uint64_t> lines) {
  std::vector<unsigned> counts;
  std::ranges::transform(lines, std::back_inserter(counts),
                         [&](std::uint64_t line) { return count_of(readers, line); });
  const auto middle = counts.begin() + static_cast<std::ptrdiff_t>(counts.size() / 2);
  std::ranges::nth_element(counts, middle);
  return *middle;
}

// The dies that read what a workgroup shares with the one at the same x in the next row.
unsigned dies_of_rows(const boards::Board& target, const GridShape& shape) {
  const auto dies = static_cast<std::uint64_t>(target.xcds);
  const auto in_turn = dies / std::gcd(std::uint64_t{shape.workgroups[0]}, dies);
  return static_cast<unsigned>(std::min<std::uint64_t>(in_turn, shape.workgroups[1]));
}

// How many dies read at the same time what neighbours in the first dimension share.
unsigned dies_that_share(const boards::Board& target, const GridShape& shape) {
  const auto& grid = shape.workgroups;
  const std::uint32_t size = grid[0] > 1 ? grid[0] : grid[1] > 1 ? grid[1] : grid[2];
  return std::min(size, static_cast<std::uint32_t>(target.xcds));
}

// The part of a compute unit's workgroups that reads each line: all, or one of the two that stand beside each other.
PartsByLine parts_of_unit(const std::unordered_set<std::uint64_t>& lines,
                          const std::unordered_set<std::uint64_t>* beside) {
  PartsByLine parts;
  for (const std::uint64_t line : lines) parts[line] = beside == nullptr || beside->contains(line) ? 1 : 0.5;
  if (beside == nullptr) return parts;
  for (const std::uint64_t line : *beside) parts.try_emplace(line, 0.5);
  return parts;
}

// Workgroups that a die has at a time, those of one compute unit at least.
std::uint64_t running_on_die(const boards::Board& target, std::uint64_t workgroups, unsigned resident) {
  const auto dies = static_cast<std::uint64_t>(target.xcds);
  return std::max<std::uint64_t>((std::min(workgroups, units_of(target) * resident) + dies - 1) / dies, resident);
}

unsigned busy_units_of_die(const boards::Board& target, std::uint64_t workgroups) {
  const auto dies = static_cast<std::uint64_t>(target.xcds);
  return static_cast<unsigned>((std::min(workgroups, units_of(target)) + dies - 1) / dies);
}

}  // namespace

std::uint64_t units_of(const boards::Board& target) {
  return static_cast<std::uint64_t>(target.compute_units / boards::compute_units_of_place(target));
}

Neighbours neighbours_of(const boards::Board& target, std::uint64_t workgroups, unsigned resident) {
  const double running = static_cast<double>(std::min(workgroups, units_of(target) * resident));
  const auto of_die = static_cast<double>(running_on_die(target, workgroups, resident));
  Neighbours neighbours;
  neighbours.compute_units = std::max(running / resident, 1.0);
  neighbours.compute_units_of_die = of_die / resident;
  neighbours.busy_units_of_die = busy_units_of_die(target, workgroups);
  neighbours.l2_part = resident / of_die;
  return neighbours;
}

LaunchSharing::LaunchSharing(const boards::Board& target, const GridShape& shape, const timing::MemoryRules& rules,
                             std::span<const Seed> seeds, std::span<const WorkgroupTrace> traces, bool spread,
                             const LaunchMemory& memory, unsigned resident)
    : target_(&target), shape_(&shape), rules_(&rules), traces_(traces), memory_(&memory), spread_(spread) {
  const auto dies = static_cast<std::uint64_t>(target.xcds);
  by_neighbour_ = by_neighbour(std::min(shape.total(), units_of(target) * resident) / dies);
  // A die's compute units get one workgroup each before any of them gets its second, so that the workgroups of one
  // compute unit are as many turns apart as the die has units at work. If that is whole rows, they have the same x.
  rows_side_by_side_ = busy_units_of_die(target, shape.total()) % turns_of_row(shape.workgroups, target) == 0;
  constexpr std::size_t few = 4;  // fewer do not show which part of an allocation the launch reads
  if (spread && traces.size() >= few && seeds.size() > 1) {
    // Seeds are in the midst of equal parts: half a part lies on either side of what they show.
    const auto parts = static_cast<double>(seeds.size());
    beyond_spans_ = traces.size() == shape.total() ? 1 : parts / (parts - 1);
    Lines touched;
    for (const WorkgroupTrace& trace : traces) {
      const Lines lines = lines_of(trace);
      for (const auto& [base, here] : by_allocation_of(as_list(lines)))
        lines_by_base_[base] += static_cast<double>(here.lines.size()) / static_cast<double>(traces.size());
      touched.insert(lines.begin(), lines.end());
    }
    for (const auto& [base, here] : by_allocation_of(as_list(touched))) {
      const auto [first, last] = std::ranges::minmax(here.lines);
      spans_.emplace(base, LineRange{.first = first, .end = last + 1});
    }
  }
  std::vector<Readers> all;
  for (const Seed& seed : seeds) all.push_back(readers_of(seed));
  if (spread) take_from_others(all, seeds);
  for (std::size_t i = 0; i < seeds.size(); ++i) of_seeds_[seeds[i].workgroup] = std::move(all[i]);
}

std::map<std::uint64_t, LinesOfAllocation> LaunchSharing::by_allocation_of(std::span<const std::uint64_t> lines) const {
  if (!memory_->find) return {};
  return by_allocation(lines, static_cast<std::uint64_t>(rules_->line.cycles()), memory_->find);
}

const WorkgroupTrace* LaunchSharing::trace_of(std::optional<std::uint64_t> workgroup) const {
  if (!workgroup) return nullptr;
  const auto found = std::ranges::lower_bound(traces_, *workgroup, {}, &WorkgroupTrace::workgroup);
  return found == traces_.end() || found->workgroup != *workgroup ? nullptr : &*found;
}

LaunchSharing::ByNeighbour LaunchSharing::by_neighbour(std::uint64_t of_die) const {
  const auto dies = static_cast<std::uint64_t>(target_->xcds);
  const std::uint64_t turns = turns_of_row(shape_->workgroups, *target_);
  const std::uint64_t of_plane = std::uint64_t{shape_->workgroups[0]} * shape_->workgroups[1] / dies;
  // Two at least were seen, if the die has both at a time.
  const auto count = [&](std::uint64_t sharers, std::uint64_t apart) {
    return static_cast<unsigned>(
        std::clamp<std::uint64_t>(sharers, of_die > apart ? 2 : 1, std::max<std::uint64_t>(of_die, 1)));
  };
  return {.next = count(turns == 1 ? of_plane : turns, 1),
          .plane = count(of_die, 1),
          .row = count(std::min(of_die, of_plane) / turns, turns),
          .both = count(of_plane, 1)};
}

LaunchSharing::Readers LaunchSharing::readers_of(const Seed& seed) const {
  Readers readers;
  const WorkgroupTrace* const trace = trace_of(seed.workgroup);
  if (trace == nullptr) return readers;
  const auto lines_of_neighbour = [&](std::optional<std::uint64_t> neighbour) {
    const WorkgroupTrace* const there = trace_of(neighbour);
    return there == nullptr ? Lines() : lines_of(*there);
  };
  const Lines of_next = lines_of_neighbour(seed.next);
  const Lines of_row = lines_of_neighbour(seed.row);
  const Lines of_across = lines_of_neighbour(seed.across);
  const Lines of_across_rows = lines_of_neighbour(seed.across_rows);
  const std::uint64_t plane = std::uint64_t{shape_->workgroups[0]} * shape_->workgroups[1];
  const bool next_plane = seed.next && seed.workgroup / plane != *seed.next / plane;
  const unsigned by_next = next_plane ? by_neighbour_.plane : by_neighbour_.next;
  for (const std::uint64_t line : lines_of(*trace)) {
    const bool in_next = of_next.contains(line);
    const bool in_row = of_row.contains(line);
    const unsigned of_die = in_next && in_row ? by_neighbour_.both : in_next ? by_next : in_row ? by_neighbour_.row : 1;
    if (of_die > 1) readers.die[line] = of_die;
    const unsigned dies = (of_across.contains(line) ? dies_that_share(*target_, *shape_) : 1) *
                          (of_across_rows.contains(line) ? dies_of_rows(*target_, *shape_) : 1);
    if (dies > 1) readers.dies[line] = std::min(dies, static_cast<unsigned>(target_->xcds));
  }
  return readers;
}

// A seed at the end of a group has a neighbour that reads other lines: the last head of those that share keys, for
// example. Where others of the sample see that an allocation is shared, its part is shared like theirs.
void LaunchSharing::take_from_others(std::vector<Readers>& all, std::span<const Seed> seeds) const {
  constexpr double majority = 0.5;
  std::map<std::uint64_t, std::vector<std::vector<std::uint64_t>>> by_base;  // the lines of each seed
  for (std::size_t i = 0; i < seeds.size(); ++i) {
    const WorkgroupTrace* const trace = trace_of(seeds[i].workgroup);
    if (trace == nullptr) continue;
    for (auto& [base, here] : by_allocation_of(as_list(lines_of(*trace)))) {
      auto& lines = by_base[base];
      lines.resize(seeds.size());
      lines[i] = std::move(here.lines);
    }
  }
  for (const auto& [base, lines] : by_base) {
    for (Counts Readers::* const which : {&Readers::die, &Readers::dies}) {
      const auto part = [&](std::size_t i) {
        const Counts& counts = all[i].*which;
        const auto shared = std::ranges::count_if(lines[i], [&](std::uint64_t line) { return counts.contains(line); });
        return lines[i].empty() ? 0 : static_cast<double>(shared) / static_cast<double>(lines[i].size());
      };
      std::optional<unsigned> seen;
      for (std::size_t i = 0; i < lines.size() && !seen; ++i)
        if (part(i) > majority) seen = median_readers(all[i].*which, lines[i]);
      for (std::size_t i = 0; seen && i < lines.size(); ++i)
        if (part(i) <= majority)
          for (const std::uint64_t line : lines[i]) (all[i].*which)[line] = *seen;
    }
  }
}

// How many lines of an allocation the launch reads: all, or what traces show of one that is more than twice as large. A
// framework's allocation holds many arrays.
double LaunchSharing::lines_read(std::uint64_t base, const LinesOfAllocation& here) const {
  const double all = std::max(static_cast<double>(here.holder->bytes) / rules_->line.value, 1.0);
  constexpr double of_many_arrays = 0.5;
  const auto span = spans_.find(base);
  if (span == spans_.end()) return all;
  const double touched = beyond_spans_ * static_cast<double>(span->second.end - span->second.first);
  return touched < of_many_arrays * all ? touched : all;
}

// What all workgroups read of an allocation over what there is to read says how many read a line in the mean. No more
// share it; neighbours say who they are, and not where their group ends.
void LaunchSharing::limit_to_mean_readers(Readers& readers, const Lines& lines, double workgroups) const {
  for (const auto& [base, here] : by_allocation_of(as_list(lines))) {
    const auto mean = lines_by_base_.find(base);
    const double of_workgroup = mean == lines_by_base_.end() ? static_cast<double>(here.lines.size()) : mean->second;
    const double mean_readers = workgroups * of_workgroup / lines_read(base, here);
    const auto most = static_cast<unsigned>(std::max(std::round(mean_readers), 2.0));  // two were seen
    for (const std::uint64_t line : here.lines) {
      const unsigned of_die = std::min(count_of(readers.die, line), most);
      const unsigned dies = std::clamp(most / of_die, 1U, count_of(readers.dies, line));
      if (of_die > 1) readers.die[line] = of_die;
      if (readers.dies.contains(line)) readers.dies[line] = dies;
    }
  }
}

// What stands beside the seed's workgroup has lines of its own, and no trace shows who else reads them. Where it has as
// many of an allocation as the seed's has that it does not read, they are shared like those, on its die and by others:
// products of tiles share one factor with the next row, the other with the next column.
void LaunchSharing::add_lines_beside(Readers& readers, const Lines& lines, const Lines& beside) const {
  const auto without = [&](const Lines& all, const Lines& others) {
    std::vector<std::uint64_t> alone;
    std::ranges::copy_if(all, std::back_inserter(alone), [&](std::uint64_t line) { return !others.contains(line); });
    return by_allocation_of(alone);
  };
  const auto of_seed = without(lines, beside);
  for (const auto& [base, there] : without(beside, lines)) {
    const auto here = of_seed.find(base);
    if (here == of_seed.end()) continue;
    const auto [fewer, more] = std::minmax(here->second.lines.size(), there.lines.size());
    constexpr std::size_t part = 8;
    if (more - fewer > more / part) continue;
    for (Counts* const counts : {&readers.die, &readers.dies}) {
      const unsigned median = median_readers(*counts, here->second.lines);
      if (median == 1) continue;
      for (const std::uint64_t line : there.lines) (*counts)[line] = median;
    }
  }
}

// Adds lines that others read without a neighbour showing it, as when each gathers what it needs from all of an array.
// `of_die` workgroups are on a die at a time; if they read as much of an array as this one, each line has so many
// readers in the mean.
void LaunchSharing::add_gathered(Counts& readers, const PartsByLine& lines, double of_die) const {
  const auto keys = lines | std::views::keys;
  for (const auto& [base, here] : by_allocation_of(std::vector<std::uint64_t>(keys.begin(), keys.end()))) {
    double read = 0;  // by a workgroup
    for (const std::uint64_t line : here.lines) read += lines.at(line);
    const auto of_line = static_cast<unsigned>(std::min(read / lines_read(base, here), 1.0) * of_die);
    if (of_line < 2) continue;
    for (const std::uint64_t line : here.lines) readers[line] = std::max(readers[line], of_line);
  }
}

std::vector<const WorkgroupTrace*> LaunchSharing::residents_of(const Seed& seed, unsigned resident) const {
  const WorkgroupTrace* const trace = trace_of(seed.workgroup);
  const WorkgroupTrace* const row = seed.row_is_alike ? trace_of(seed.row) : nullptr;
  const WorkgroupTrace* beside = seed.next_is_alike ? trace_of(seed.next) : nullptr;
  if (rows_side_by_side_ && row != nullptr) beside = row;
  if (beside == nullptr) beside = trace;
  std::vector<const WorkgroupTrace*> workgroups(resident, trace);
  for (unsigned r = 1; r < resident; r += 2) workgroups[r] = beside;
  return workgroups;
}

Neighbours LaunchSharing::neighbours_of_unit(const Seed& seed, std::span<const WorkgroupTrace* const> residents,
                                             std::uint64_t alike) const {
  const auto resident = static_cast<unsigned>(residents.size());
  Neighbours neighbours = neighbours_of(*target_, alike, resident);
  neighbours.warm = memory_->warm;
  neighbours.in_last_level = memory_->in_last_level;
  const Lines lines = lines_of(*residents.front());
  const Lines beside = resident > 1 ? lines_of(*residents[1]) : Lines();
  const auto known = of_seeds_.find(seed.workgroup);
  Readers readers = known == of_seeds_.end() ? Readers() : known->second;
  limit_to_mean_readers(readers, lines, static_cast<double>(spread_ ? shape_->total() : alike));
  if (resident > 1) add_lines_beside(readers, lines, beside);
  const PartsByLine of_unit = parts_of_unit(lines, resident > 1 ? &beside : nullptr);
  add_gathered(readers.die, of_unit, static_cast<double>(running_on_die(*target_, alike, resident)));
  const double workgroups_of_die = std::ceil(static_cast<double>(shape_->total()) / static_cast<double>(target_->xcds));
  neighbours.in_l2 =
      left_in_l2(*memory_, of_unit, readers.die, workgroups_of_die, rules_->l2_bytes.value / rules_->line.value);
  // Both traces stand for one workgroup, or for several where a compute unit has more than two.
  const bool has_two = resident > 1 && residents[1] != residents.front();
  neighbours.traces = has_two ? 2 : 1;
  for (const auto& [line, count] : readers.die) {
    const bool several_of_unit = count > neighbours.busy_units_of_die;
    const unsigned traces = has_two && lines.contains(line) && beside.contains(line) ? 2 : 1;
    const unsigned copies = several_of_unit ? std::max(resident / neighbours.traces, 1U) : 1;
    neighbours.sharers[line] = {.of_die = count, .of_unit = traces * copies, .one_for_copies = several_of_unit};
  }
  neighbours.dies = std::move(readers.dies);
  return neighbours;
}

std::optional<double> LaunchSharing::shared_part(const Seed& seed) const {
  const WorkgroupTrace* const trace = trace_of(seed.workgroup);
  if (trace == nullptr || (trace_of(seed.next) == nullptr && trace_of(seed.row) == nullptr)) return std::nullopt;
  const Lines lines = lines_of(*trace);
  if (lines.empty()) return 0;
  return static_cast<double>(of_seeds_.at(seed.workgroup).die.size()) / static_cast<double>(lines.size());
}

}  // namespace wavejit::simgpu::clock
