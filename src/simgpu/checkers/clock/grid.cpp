// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/checkers/clock/grid.h"

#include <algorithm>
#include <cmath>
#include <format>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <queue>
#include <ranges>
#include <unordered_map>
#include <unordered_set>

#include "boards/board.h"

namespace wavejit::simgpu::clock {
namespace {

std::unordered_set<std::uint64_t> lines_of(const WorkgroupTrace& trace) {
  std::unordered_set<std::uint64_t> lines;
  for (const WaveTrace& wave : trace.waves) lines.insert(wave.lines.begin(), wave.lines.end());
  return lines;
}

// Compute units that share their waves are one.
std::uint64_t units_of(const boards::Board& target) {
  return static_cast<std::uint64_t>(target.compute_units / boards::compute_units_of_place(target));
}

// Workgroups go round the dies by linear id; on a die each goes to the place that is free first, one after the other.
struct Dispatch {
  std::uint64_t cycles = 0;
  std::uint64_t taken = 0;  // cycles of all places
  std::uint64_t pipes = 0;  // cycles of all matrix pipes
};
// What each workgroup takes of its place, and what of the pipes: both are known of the sample, and follow the same rule
// to all others.
template <typename Durations>
Dispatch dispatch(const Program& program, const GridShape& shape, unsigned resident, const Durations& durations,
                  const Durations& pipes) {
  const boards::Board& target = program.target();
  const double apart = program.timing().launch.workgroup.value;
  const auto dies = static_cast<std::uint64_t>(target.xcds);
  const std::uint64_t places = units_of(target) / dies * resident;
  Dispatch all;
  for (std::uint64_t die = 0; die < dies; ++die) {
    std::priority_queue<std::uint64_t, std::vector<std::uint64_t>, std::greater<>> free;
    for (std::uint64_t i = 0; i < places; ++i) free.push(0);
    double next = 0;
    for (std::uint64_t workgroup = die; workgroup < shape.total(); workgroup += dies) {
      const std::uint64_t cycles = durations.of(workgroup);
      const double begin = std::max(static_cast<double>(free.top()), next);
      next = begin + apart;
      const std::uint64_t end = static_cast<std::uint64_t>(begin) + cycles;
      free.pop();
      free.push(end);
      all.cycles = std::max(all.cycles, end);
      all.taken += cycles;
      all.pipes += pipes.of(workgroup);
    }
  }
  return all;
}

// How many of the workgroups that a die has at a time read a line, by which neighbours read it.
struct Sharing {
  unsigned next = 1;  // the next of the die alone: a row's
  unsigned row = 1;   // the next row alone: those of the same x and z
  unsigned both = 1;  // those of the same z
};
Sharing sharing_of(const boards::Board& target, const GridShape& shape, std::uint64_t of_die) {
  const auto dies = static_cast<std::uint64_t>(target.xcds);
  const std::uint64_t turns = turns_of_row(shape.workgroups, target);
  const std::uint64_t of_plane = std::uint64_t{shape.workgroups[0]} * shape.workgroups[1] / dies;
  const auto count = [&](std::uint64_t sharers) {
    return static_cast<unsigned>(std::clamp<std::uint64_t>(sharers, 1, std::max<std::uint64_t>(of_die, 1)));
  };
  // A plane of one workgroup a die: the next one is in another plane.
  const std::uint64_t of_rows = of_plane <= 1 ? of_die : of_plane;
  return {.next = count(turns == 1 ? of_rows : turns),
          .row = count(std::min(of_die, of_plane) / turns),
          .both = count(of_plane)};
}

// The lines of a workgroup that others read too.
std::unordered_map<std::uint64_t, unsigned> shared_lines_of(const std::unordered_set<std::uint64_t>& lines,
                                                            const WorkgroupTrace* next, const WorkgroupTrace* row,
                                                            const Sharing& sharing) {
  const auto of_next = next == nullptr ? std::unordered_set<std::uint64_t>() : lines_of(*next);
  const auto of_row = row == nullptr ? std::unordered_set<std::uint64_t>() : lines_of(*row);
  std::unordered_map<std::uint64_t, unsigned> shared;
  for (const std::uint64_t line : lines) {
    const bool in_next = of_next.contains(line);
    const bool in_row = of_row.contains(line);
    if (in_next || in_row) shared[line] = in_next && in_row ? sharing.both : in_next ? sharing.next : sharing.row;
  }
  return shared;
}

// What a launch touches of each allocation, as far as traces show: from the first line to the last.
using Spans = std::map<std::uint64_t, LineRange>;  // by the allocation's base
Spans spans_of(std::span<const WorkgroupTrace> traces, std::uint64_t line_bytes, const FindAllocation& find) {
  Spans spans;
  constexpr std::size_t few = 4;  // that say nothing of where others are
  if (!find || traces.size() < few) return spans;
  std::unordered_set<std::uint64_t> lines;
  for (const WorkgroupTrace& trace : traces) lines.merge(lines_of(trace));
  for (const auto& [base, here] : by_allocation(std::vector(lines.begin(), lines.end()), line_bytes, find)) {
    const auto [first, last] = std::ranges::minmax(here.lines);
    spans.emplace(base, LineRange{.first = first, .end = last + 1});
  }
  return spans;
}

// Adds lines that others read without a neighbour showing it, as when each gathers what it needs from all of an array.
// `of_die` workgroups are on a die at a time; if they read as much of an array as this one, each line has so many readers
// in the mean. An array is an allocation, or what the launch touches of one that is more than twice as large: a
// framework's holds many.
void add_gathered(std::unordered_map<std::uint64_t, unsigned>& sharers, const PartsByLine& lines, double of_die,
                  std::uint64_t line_bytes, const FindAllocation& find, const Spans& spans) {
  if (!find) return;
  const auto keys = lines | std::views::keys;
  for (const auto& [base, here] :
       by_allocation(std::vector<std::uint64_t>(keys.begin(), keys.end()), line_bytes, find)) {
    double all = std::max(static_cast<double>(here.holder->bytes) / static_cast<double>(line_bytes), 1.0);
    // Traces are of workgroups in the midst of equal parts: an eighth may lie on either side.
    constexpr double beside = 4.0 / 3;
    constexpr double of_many_arrays = 0.5;
    if (const auto span = spans.find(base); span != spans.end()) {
      const double touched = beside * static_cast<double>(span->second.end - span->second.first);
      if (touched < of_many_arrays * all) all = touched;
    }
    double read = 0;  // by a workgroup
    for (const std::uint64_t line : here.lines) read += lines.at(line);
    const auto readers = static_cast<unsigned>(std::min(read / all, 1.0) * of_die);
    if (readers < 2) continue;
    for (const std::uint64_t line : here.lines) sharers[line] = std::max(sharers[line], readers);
  }
}

// How many dies read at the same time what neighbours in the first dimension share.
unsigned dies_that_share(const boards::Board& target, const GridShape& shape) {
  const auto& grid = shape.workgroups;
  const std::uint32_t size = grid[0] > 1 ? grid[0] : grid[1] > 1 ? grid[1] : grid[2];
  return std::min(size, static_cast<std::uint32_t>(target.xcds));
}

// When the workgroups of a compute unit that began together began and ended.
struct Ends {
  double mean_start = 0;
  double mean = 0;
  std::uint64_t first = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t last = 0;
};
Ends ends_of(const ComputeUnitResult& unit, unsigned resident, unsigned waves) {
  Ends ends;
  for (unsigned r = 0; r < resident; ++r) {
    std::uint64_t begin = std::numeric_limits<std::uint64_t>::max();
    std::uint64_t end = 0;
    for (const WaveResult& wave : std::span(unit.waves).subspan(std::size_t{r} * waves, waves)) {
      begin = std::min(begin, wave.start);
      end = std::max(end, wave.end);
    }
    ends.mean_start += static_cast<double>(begin) / resident;
    ends.mean += static_cast<double>(end) / resident;
    ends.first = std::min(ends.first, end);
    ends.last = std::max(ends.last, end);
  }
  return ends;
}

// What a workgroup takes of its place while all places of the compute unit are taken, and others come behind it.
// Workgroups that began together do not end together, and the last ones have units to themselves that the dispatcher would
// give to others: so what was done until the first one ended decides, by the matrix pipes.
double cycles_in_turn(const ComputeUnitResult& unit, const Ends& ends) {
  double all = 0;
  double done = 0;
  for (std::size_t i = 0; i < unit.matrix_buckets.size(); ++i) {
    const auto bucket = static_cast<double>(unit.matrix_buckets[i]);
    const double begin = static_cast<double>(i) * ComputeUnitResult::bucket_cycles;
    all += bucket;
    const double length = std::min<double>(ComputeUnitResult::bucket_cycles, static_cast<double>(unit.cycles) - begin);
    done += bucket * std::clamp((static_cast<double>(ends.first) - begin) / std::max(length, 1.0), 0.0, 1.0);
  }
  const double together = static_cast<double>(ends.first) - ends.mean_start;
  // Without matrix instructions in that time there is nothing to go by but the mean.
  const double cycles = done > 0 && together > 0 ? together * all / done : ends.mean - ends.mean_start;
  // No less than the pipes need, and what is busiest of all else. What the workgroup before left to write back is as much
  // as it leaves itself.
  const double pipes = std::ceil(all / static_cast<double>(unit.simds.size()));
  return std::max({cycles, pipes, static_cast<double>(unit.busiest_cycles)});
}

// Where nobody comes behind, the last one's end is the launch's.
std::uint64_t place_cycles(const ComputeUnitResult& unit, unsigned resident, unsigned waves, bool all_at_once) {
  const Ends ends = ends_of(unit, resident, waves);
  const double cycles = all_at_once ? static_cast<double>(ends.last) : cycles_in_turn(unit, ends);
  return static_cast<std::uint64_t>(std::max(cycles, 1.0));  // none at all, if all it does is to end
}

// Workgroups with at least half of this one's work, up to `most`. Where a launch has room for longer sequences than there
// are, most of its workgroups end at once: those that work have compute units, and the rates of memory, to themselves.
std::uint64_t as_busy_as(const Seed& seed, std::uint64_t workgroups, const Survey* survey, std::uint64_t most) {
  if (survey == nullptr) return workgroups;
  const std::uint64_t least = survey->work_of(seed.workgroup) / 2;
  std::uint64_t busy = 0;
  for (std::uint64_t i = 0; i < workgroups && busy < most; ++i) busy += survey->work_of(i) >= least ? 1 : 0;
  return busy;
}

}  // namespace

Neighbours neighbours_of(const boards::Board& target, std::uint64_t workgroups, unsigned resident) {
  const std::uint64_t active = std::min(workgroups, units_of(target));
  const auto dies = static_cast<std::uint64_t>(target.xcds);
  const std::uint64_t of_die = (std::min(workgroups, units_of(target) * resident) + dies - 1) / dies;
  Neighbours neighbours;
  neighbours.compute_units = static_cast<unsigned>(active);
  neighbours.compute_units_of_die = static_cast<unsigned>((active + dies - 1) / dies);
  neighbours.l2_part = std::min(resident / static_cast<double>(of_die), 1.0);
  return neighbours;
}

std::uint64_t cold_cycles(const timing::Timing& timing) {
  return static_cast<std::uint64_t>(std::max(
      timing.wave.cold_code.value + timing.memory.cold_arguments.value - timing.memory.scalar_latency.value, 0.0));
}

namespace {

// What all of a launch's workgroups have in common.
struct Whole {
  const boards::Board* target = nullptr;
  const GridShape* shape = nullptr;
  const timing::MemoryRules* rules = nullptr;
  std::span<const WorkgroupTrace> traces;
  const LaunchMemory* memory = nullptr;
  Sharing sharing;
  bool rows_side_by_side = false;  // on a compute unit
  Spans spans;

  const WorkgroupTrace* trace_of(std::optional<std::uint64_t> workgroup) const {
    if (!workgroup) return nullptr;
    const auto found = std::ranges::lower_bound(traces, *workgroup, {}, &WorkgroupTrace::workgroup);
    return found == traces.end() || found->workgroup != *workgroup ? nullptr : &*found;
  }
};

// `spread`: the traced workgroups stand in the midst of equal parts of the launch, so that they show what it touches.
Whole whole_of(const Program& program, const GridShape& shape, std::span<const WorkgroupTrace> traces, bool spread,
               const LaunchMemory& memory, unsigned resident) {
  const boards::Board& target = program.target();
  const auto dies = static_cast<std::uint64_t>(target.xcds);
  const Neighbours neighbours = neighbours_of(target, shape.total(), resident);
  const std::uint64_t at_a_time = std::uint64_t{neighbours.compute_units} * resident;
  return {
      .target = &target,
      .shape = &shape,
      .rules = &program.timing().memory,
      .traces = traces,
      .memory = &memory,
      .sharing = sharing_of(target, shape, std::min(shape.total(), at_a_time) / dies),
      // The dispatcher fills the die's compute units once before it comes round: so far apart are those of one.
      .rows_side_by_side = neighbours.compute_units_of_die % turns_of_row(shape.workgroups, target) == 0,
      .spans = spread ? spans_of(traces, static_cast<std::uint64_t>(program.timing().memory.line.cycles()), memory.find)
                      : Spans()};
}

// What a workgroup of the sample shares with others, and finds in caches. `alike`: how many do as much as it.
Neighbours neighbours_of_seed(const Whole& whole, const Seed& seed, const std::unordered_set<std::uint64_t>& lines,
                              std::uint64_t alike, unsigned resident) {
  const boards::Board& target = *whole.target;
  Neighbours neighbours = neighbours_of(target, alike, resident);
  neighbours.warm = whole.memory->warm;
  neighbours.in_last_level = whole.memory->in_last_level;
  if (const WorkgroupTrace* const across = whole.trace_of(seed.across); across != nullptr) {
    const auto there = lines_of(*across);
    for (const std::uint64_t line : lines)
      if (there.contains(line)) neighbours.dies[line] = dies_that_share(target, *whole.shape);
  }
  neighbours.sharers = shared_lines_of(lines, whole.trace_of(seed.next), whole.trace_of(seed.row), whole.sharing);
  return neighbours;
}

// How many read a line, of the middle one of some; those that are not among `readers` are read by one.
unsigned middle_of(const std::unordered_map<std::uint64_t, unsigned>& readers, std::span<const std::uint64_t> lines) {
  std::vector<unsigned> counts;
  std::ranges::transform(lines, std::back_inserter(counts), [&](std::uint64_t line) {
    const auto found = readers.find(line);
    return found == readers.end() ? 1U : found->second;
  });
  const auto middle = counts.begin() + static_cast<std::ptrdiff_t>(counts.size() / 2);
  std::ranges::nth_element(counts, middle);
  return *middle;
}

// What stands beside the seed's workgroup has lines of its own, and no trace shows who else reads them. Where it has as many
// of an allocation as the seed's has that it does not read, they are shared like those, on its die and by others:
// products of tiles share one factor with the next row, the other with the next column.
void add_lines_beside(Neighbours& neighbours, const Whole& whole, const std::unordered_set<std::uint64_t>& lines,
                      const std::unordered_set<std::uint64_t>& beside) {
  if (!whole.memory->find) return;
  const auto line_bytes = static_cast<std::uint64_t>(whole.rules->line.cycles());
  const auto without = [&](const std::unordered_set<std::uint64_t>& all,
                           const std::unordered_set<std::uint64_t>& others) {
    std::vector<std::uint64_t> alone;
    std::ranges::copy_if(all, std::back_inserter(alone), [&](std::uint64_t line) { return !others.contains(line); });
    return by_allocation(alone, line_bytes, whole.memory->find);
  };
  const auto of_seed = without(lines, beside);
  for (const auto& [base, there] : without(beside, lines)) {
    const auto here = of_seed.find(base);
    if (here == of_seed.end()) continue;
    const auto [fewer, more] = std::minmax(here->second.lines.size(), there.lines.size());
    constexpr std::size_t part = 8;
    if (more - fewer > more / part) continue;
    for (auto* const readers : {&neighbours.sharers, &neighbours.dies}) {
      const unsigned middle = middle_of(*readers, here->second.lines);
      if (middle == 1) continue;
      for (const std::uint64_t line : there.lines) (*readers)[line] = middle;
    }
  }
}

void add_caches(Neighbours& neighbours, const Whole& whole, const PartsByLine& lines, unsigned resident) {
  add_gathered(neighbours.sharers, lines, resident / neighbours.l2_part,
               static_cast<std::uint64_t>(whole.rules->line.cycles()), whole.memory->find, whole.spans);
  const double of_die = std::ceil(static_cast<double>(whole.shape->total()) / static_cast<double>(whole.target->xcds));
  neighbours.in_l2 = left_in_l2(*whole.memory, lines, neighbours.sharers, of_die,
                                whole.rules->l2_bytes.value / whole.rules->line.value);
}

// The traces of a compute unit that has the seed's workgroup, and what is like it, beside it.
std::vector<const WorkgroupTrace*> residents_of(const Whole& whole, const Seed& seed, unsigned resident) {
  const WorkgroupTrace* const trace = whole.trace_of(seed.workgroup);
  const WorkgroupTrace* const row = whole.trace_of(seed.row);
  const WorkgroupTrace* beside = seed.next_is_alike ? whole.trace_of(seed.next) : nullptr;
  if (whole.rows_side_by_side && row != nullptr && seed.row_is_alike) beside = row;
  if (beside == nullptr) beside = trace;
  std::vector<const WorkgroupTrace*> workgroups(resident, trace);
  for (unsigned r = 1; r < resident; r += 2) workgroups[r] = beside;
  return workgroups;
}

}  // namespace

std::expected<GridResult, std::string> time_grid(Program& program, const GridShape& shape, std::span<const Seed> seeds,
                                                 std::span<const WorkgroupTrace> traces, std::uint64_t timeline,
                                                 const Survey* survey, const LaunchMemory& memory) {
  const boards::Board& target = program.target();
  GridResult grid;
  grid.workgroups = shape.total();
  if (grid.workgroups == 0) return std::unexpected("the launch has no workgroup");
  grid.occupancy = occupancy_of(target, shape.vgprs, shape.lds_bytes, shape.waves);
  if (grid.occupancy.workgroups == 0) {
    return std::unexpected(std::format("no workgroup of {} waves with {} registers and {} bytes of LDS fits {}",
                                       shape.waves, shape.vgprs, shape.lds_bytes, target.id));
  }
  const std::uint64_t units = units_of(target);
  grid.resident = static_cast<unsigned>(
      std::clamp<std::uint64_t>((grid.workgroups + units - 1) / units, 1, grid.occupancy.workgroups));
  const Whole whole = whole_of(program, shape, traces, survey == nullptr, memory, grid.resident);
  double shared_lines = 0;
  std::size_t with_neighbours = 0;
  double steady = 0;
  std::vector<SampledTime> pipe_cycles;  // of each of the sample
  double write_back = 0;
  for (const Seed& seed : seeds) {
    const WorkgroupTrace* const trace = whole.trace_of(seed.workgroup);
    if (trace == nullptr) continue;
    const std::uint64_t alike =
        std::max<std::uint64_t>(as_busy_as(seed, grid.workgroups, survey, units * grid.resident), 1);
    const auto resident =
        static_cast<unsigned>(std::clamp<std::uint64_t>((alike + units - 1) / units, 1, grid.resident));
    const auto lines = lines_of(*trace);
    ComputeUnitRequest request;
    request.workgroups = residents_of(whole, seed, resident);
    request.resident = resident;
    request.neighbours = neighbours_of_seed(whole, seed, lines, alike, resident);
    if (whole.trace_of(seed.next) != nullptr || whole.trace_of(seed.row) != nullptr) {
      shared_lines += lines.empty() ? 0 : static_cast<double>(request.neighbours.sharers.size()) / lines.size();
      ++with_neighbours;
    }
    PartsByLine of_unit;
    for (const std::uint64_t line : lines) of_unit[line] = 1;
    if (resident > 1) {
      const auto beside = lines_of(*request.workgroups[1]);
      add_lines_beside(request.neighbours, whole, lines, beside);
      for (auto& [line, part] : of_unit) part = beside.contains(line) ? 1 : 0.5;
      for (const std::uint64_t line : beside) of_unit.try_emplace(line, 0.5);
    }
    add_caches(request.neighbours, whole, of_unit, resident);
    auto unit = run_compute_unit(program, request);
    if (!unit) return std::unexpected(std::format("workgroup {}: {}", seed.workgroup, unit.error()));
    if (timeline != 0 && grid.units.empty()) {
      // Where the middle is shows only now; a second run is the same to the cycle.
      request.timeline_first = unit->cycles / 2;
      request.timeline_last = request.timeline_first + timeline;
      unit = run_compute_unit(program, request);
      if (!unit) return std::unexpected(unit.error());
    }
    const std::uint64_t cycles = place_cycles(*unit, resident, shape.waves, grid.workgroups <= units * grid.resident);
    grid.sample.push_back({.workgroup = seed.workgroup, .cycles = cycles});
    std::uint64_t pipes_busy = 0;
    for (const SimdResult& simd : unit->simds) pipes_busy += simd.matrix_busy;
    pipe_cycles.push_back({.workgroup = seed.workgroup, .cycles = pipes_busy / resident});
    // What is counted above as the next one's burden is none of the end.
    const std::uint64_t burden = cycles > unit->cycles ? cycles - unit->cycles : 0;
    write_back += static_cast<double>(unit->write_back_cycles - std::min(unit->write_back_cycles, burden));
    steady += unit->steady_matrix_busy();
    grid.units.push_back(std::move(*unit));
  }
  if (grid.units.empty()) return std::unexpected("no workgroup was taken down");
  const auto timed = static_cast<double>(grid.units.size());
  const bool has_matrix = std::ranges::contains(program.steps(), Kind::matrix, &Step::kind);
  if (has_matrix &&
      std::ranges::all_of(grid.units, [](const ComputeUnitResult& unit) { return unit.matrix_busy() == 0; })) {
    grid.doubt = std::format(
        "the kernel has matrix instructions, and none of the {} workgroups that were timed of {} ran one: either the "
        "launch has nothing to do, or those that do its work are not among them",
        grid.units.size(), grid.workgroups);
  }
  grid.shared_lines = with_neighbours == 0 ? 0 : shared_lines / static_cast<double>(with_neighbours);
  grid.steady_matrix_busy = steady / timed;
  Dispatch all;
  if (survey == nullptr) {
    all = dispatch(program, shape, grid.resident, Durations(grid.sample, shape.workgroups),
                   Durations(pipe_cycles, shape.workgroups));
  } else {
    all = dispatch(program, shape, grid.resident, DurationsByWork(grid.sample, *survey),
                   DurationsByWork(pipe_cycles, *survey));
  }
  grid.cold_cycles = cold_cycles(program.timing());
  grid.write_back_cycles = static_cast<std::uint64_t>(write_back / timed);
  grid.cycles = all.cycles + grid.cold_cycles + grid.write_back_cycles;
  const double places = static_cast<double>(units) * grid.resident * static_cast<double>(grid.cycles);
  grid.busy = places == 0 ? 0 : static_cast<double>(all.taken) / places;
  const auto pipes = static_cast<double>(target.compute_units) * target.simds_per_compute_unit;
  grid.matrix_busy = static_cast<double>(all.pipes) / (pipes * static_cast<double>(grid.cycles));
  return grid;
}

}  // namespace wavejit::simgpu::clock
