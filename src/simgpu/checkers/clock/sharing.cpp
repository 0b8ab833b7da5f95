// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/checkers/clock/sharing.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <ranges>
#include <set>

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

// The median over these lines, of which there is one at least; a line that is not known has `otherwise`.
template <typename Value>
Value median_of(const std::unordered_map<std::uint64_t, Value>& by_line, std::span<const std::uint64_t> lines,
                Value otherwise) {
  std::vector<Value> values;
  std::ranges::transform(lines, std::back_inserter(values), [&](std::uint64_t line) {
    const auto found = by_line.find(line);
    return found == by_line.end() ? otherwise : found->second;
  });
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

// On how many dies a group of workgroups is, `in_row` beside each other in each of `rows`. They go round by linear id.
unsigned dies_of_group(std::uint64_t in_row, std::uint64_t rows, std::uint64_t row_length, std::uint64_t dies) {
  std::set<std::uint64_t> of_group;
  for (std::uint64_t row = 0; row < std::min(rows, dies); ++row)
    for (std::uint64_t x = 0; x < std::min(in_row, dies); ++x) of_group.insert((x + (row * row_length)) % dies);
  return static_cast<unsigned>(of_group.size());
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
  running_ = static_cast<double>(std::min(shape.total(), units_of(target) * resident));
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
  std::vector<Seen> all;
  for (const Seed& seed : seeds) all.push_back(seen_by_neighbours(seed));
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

LaunchSharing::Seen LaunchSharing::seen_by_neighbours(const Seed& seed) const {
  Seen seen;
  const WorkgroupTrace* const trace = trace_of(seed.workgroup);
  if (trace == nullptr) return seen;
  const std::uint64_t plane = std::uint64_t{shape_->workgroups[0]} * shape_->workgroups[1];
  const bool next_plane = seed.next && seed.workgroup / plane != *seed.next / plane;
  const bool next_is_row = turns_of_row(shape_->workgroups, *target_) == 1;
  const auto note = [&](std::optional<std::uint64_t> neighbour, Neighbour as) {
    const WorkgroupTrace* const there = trace_of(neighbour);
    if (there == nullptr) return;
    const Lines lines = lines_of(*there);
    for (const std::uint64_t line : lines_of(*trace))
      if (lines.contains(line)) seen[line] |= as;
  };
  note(seed.next, next_plane ? in_next_plane : next_is_row ? in_row : in_next);
  note(seed.row, in_row);
  note(seed.across, across_x);
  note(seed.across_rows, across_rows);
  return seen;
}

// A seed at the end of a group has a neighbour that reads other lines: the last head of those that share keys, for
// example. Where others of the sample see that an allocation is shared, its part is shared like theirs.
void LaunchSharing::take_from_others(std::vector<Seen>& all, std::span<const Seed> seeds) const {
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
    for (const unsigned neighbour : {in_next, in_row, in_next_plane, across_x, across_rows}) {
      const auto is_seen = [&](std::size_t i) {
        const auto shared = std::ranges::count_if(lines[i], [&](std::uint64_t line) {
          const auto seen = all[i].find(line);
          return seen != all[i].end() && (seen->second & neighbour) != 0;
        });
        return static_cast<double>(shared) > majority * static_cast<double>(lines[i].size());
      };
      const auto of_base = std::views::iota(std::size_t{0}, lines.size());
      if (std::ranges::none_of(of_base, is_seen)) continue;
      for (const std::size_t i : of_base)
        if (!is_seen(i))
          for (const std::uint64_t line : lines[i]) all[i][line] |= neighbour;
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

// The workgroup beside this one reads the line, too, so a group has it: `readers` workgroups, as many in each row that has
// any. Their ids say on how many dies they are.
LaunchSharing::Sharers LaunchSharing::of_group(unsigned seen, double readers) const {
  const double x = shape_->workgroups[0];
  const double y = shape_->workgroups[1];
  const bool by_rows = (seen & (in_row | across_rows)) != 0;
  const double all_rows = by_rows ? y : 1;
  const double of_row = std::clamp(std::round(readers / all_rows), 2.0, std::max(x, 2.0));
  const double rows = std::clamp(std::round(readers / of_row), 1.0, all_rows);
  const unsigned dies = dies_of_group(static_cast<std::uint64_t>(of_row), static_cast<std::uint64_t>(rows),
                                      shape_->workgroups[0], static_cast<std::uint64_t>(target_->xcds));
  // The GPU may have no more than a part of the rows at a time.
  const double at_a_time = std::min(running_ / (by_rows ? x * y : x), 1.0);
  return {.of_die = of_row * rows * at_a_time / dies, .dies = static_cast<double>(dies)};
}

// `readers`: how many read a line, in the mean of all lines of its allocation. A neighbour shows who reads it, and not
// where the group of readers ends.
LaunchSharing::Sharers LaunchSharing::sharers_of(unsigned seen, double readers) const {
  const double all_dies = target_->xcds;
  const double on_die_at_a_time = std::max(running_ / all_dies, 1.0);
  Sharers sharers;
  if ((seen & across_x) != 0 && (seen & in_next_plane) == 0) {
    sharers = of_group(seen, readers);
  } else {
    const auto turns = static_cast<double>(turns_of_row(shape_->workgroups, *target_));
    const auto [x, y, z] = shape_->workgroups;
    const double of_plane = static_cast<double>(x) * y / all_dies;
    if ((seen & in_next_plane) != 0) {
      sharers.of_die = on_die_at_a_time;
    } else if ((seen & in_next) != 0) {
      sharers.of_die = (seen & in_row) != 0 ? of_plane : std::min(turns, of_plane);
    } else if ((seen & in_row) != 0) {
      sharers.of_die = std::min(on_die_at_a_time, of_plane) / turns;
    }
    sharers.of_die = std::min(sharers.of_die, readers);
    const double rows_apart =
        (seen & across_rows) != 0 ? dies_of_group(1, y, x, static_cast<std::uint64_t>(target_->xcds)) : 1;
    const double most = (seen & across_x) != 0 ? all_dies : rows_apart;
    sharers.dies = std::min(most, readers / std::max(sharers.of_die, 1.0));
  }
  return {.of_die = std::clamp(sharers.of_die, 1.0, on_die_at_a_time), .dies = std::max(sharers.dies, 1.0)};
}

// What `workgroups` read of an allocation over what there is to read says how many read a line in the mean.
LaunchSharing::Readers LaunchSharing::readers_of(const Seen& seen, const Lines& lines, double workgroups) const {
  Readers readers;
  const auto add = [&](std::uint64_t line, unsigned neighbours, double most) {
    const auto [of_die, dies] = sharers_of(neighbours, most);
    readers.die.erase(line);
    readers.dies.erase(line);
    if (of_die > 1) readers.die[line] = of_die;
    if (dies > 1) readers.dies[line] = dies;
  };
  for (const auto& [line, neighbours] : seen) add(line, neighbours, workgroups);
  for (const auto& [base, here] : by_allocation_of(as_list(lines))) {
    const auto mean = lines_by_base_.find(base);
    const double of_workgroup = mean == lines_by_base_.end() ? static_cast<double>(here.lines.size()) : mean->second;
    const double mean_readers = workgroups * of_workgroup / lines_read(base, here);
    const double most = std::max(std::round(mean_readers), 2.0);  // two were seen
    for (const std::uint64_t line : here.lines)
      if (const auto by = seen.find(line); by != seen.end()) add(line, by->second, most);
  }
  return readers;
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
    for (ReadersByLine* const counts : {&readers.die, &readers.dies}) {
      const double median = median_of(*counts, here->second.lines, 1.0);
      if (median == 1) continue;
      for (const std::uint64_t line : there.lines) (*counts)[line] = median;
    }
  }
}

// Adds lines that others read without a neighbour showing it, as when each gathers what it needs from all of an array.
// `of_die` workgroups are on a die at a time; if they read as much of an array as this one, each line has so many
// readers in the mean.
void LaunchSharing::add_gathered(ReadersByLine& readers, const PartsByLine& lines, double of_die) const {
  const auto keys = lines | std::views::keys;
  for (const auto& [base, here] : by_allocation_of(std::vector<std::uint64_t>(keys.begin(), keys.end()))) {
    double read = 0;  // by a workgroup
    for (const std::uint64_t line : here.lines) read += lines.at(line);
    const double of_line = std::min(read / lines_read(base, here), 1.0) * of_die;
    if (of_line <= 1) continue;
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
  const double workgroups = static_cast<double>(spread_ ? shape_->total() : alike);
  Readers readers = readers_of(known == of_seeds_.end() ? Seen() : known->second, lines, workgroups);
  if (resident > 1) add_lines_beside(readers, lines, beside);
  const PartsByLine of_unit = parts_of_unit(lines, resident > 1 ? &beside : nullptr);
  const auto running = static_cast<double>(std::min(alike, units_of(*target_) * resident));
  const double of_die = std::max<double>(running / target_->xcds, resident);
  add_gathered(readers.die, of_unit, of_die);
  // Behind full rounds, or where few are busy, a die has fewer at a time.
  for (double& count : readers.die | std::views::values) count = std::min(count, of_die);
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
  const Readers readers = readers_of(of_seeds_.at(seed.workgroup), lines, static_cast<double>(shape_->total()));
  return static_cast<double>(readers.die.size()) / static_cast<double>(lines.size());
}

}  // namespace wavejit::simgpu::clock
