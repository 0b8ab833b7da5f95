// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/checkers/clock/grid.h"

#include <algorithm>
#include <cmath>
#include <format>
#include <limits>
#include <optional>
#include <queue>

#include "boards/board.h"

namespace wavejit::simgpu::clock {
namespace {

// Workgroups go round the dies by linear id; on a die each goes to the place that is free first, one after the other.
struct Dispatch {
  std::uint64_t cycles = 0;
  std::uint64_t taken = 0;  // cycles of all places
  std::uint64_t pipes = 0;  // cycles of all matrix pipes
};
// Workgroups behind full rounds, which have compute units and memory nearly to themselves.
template <typename Durations>
struct LastRound {
  std::uint64_t workgroups = 0;
  std::optional<Durations> durations;
};
// What each workgroup takes of its place, and what of the pipes: both are known of the sample, and follow the same rule
// to all others.
template <typename Durations>
Dispatch dispatch(const Program& program, const GridShape& shape, unsigned resident, const Durations& durations,
                  const Durations& pipes, const LastRound<Durations>& last = {}) {
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
      const bool is_last = last.durations && workgroup >= shape.total() - last.workgroups;
      const std::uint64_t cycles = (is_last ? *last.durations : durations).of(workgroup);
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

// Where no workgroup waits for a place, the launch ends with the last one.
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

// One compute unit of the launch, with the workgroup of a seed and what stands beside it.
struct TimedUnit {
  ComputeUnitResult unit;
  std::uint64_t cycles = 0;      // of its place, for each workgroup
  std::uint64_t pipes = 0;       // cycles of matrix pipes, for each workgroup
  std::uint64_t write_back = 0;  // what is left to write at its end
};

struct TimeOfUnit {
  const GridShape& shape;
  const LaunchSharing& sharing;
  const Survey* survey;
  std::uint64_t workgroups;  // all, or those of the last round
  unsigned resident;         // workgroups of a compute unit, where all are alike
  std::uint64_t timeline;    // cycles of the middle that are kept; 0: none
};

// A unit that has `resident` of the `alike` workgroups that do as much as the seed's.
std::expected<TimedUnit, std::string> time_unit_of(Program& program, const Seed& seed, const TimeOfUnit& of,
                                                   std::uint64_t alike, unsigned resident) {
  ComputeUnitRequest request;
  request.workgroups = of.sharing.residents_of(seed, resident);
  request.resident = resident;
  request.neighbours = of.sharing.neighbours_of_unit(seed, request.workgroups, alike);
  auto unit = run_compute_unit(program, request);
  if (unit && of.timeline != 0) {
    // Where the middle is shows only now; a second run is the same to the cycle.
    request.timeline_first = unit->cycles / 2;
    request.timeline_last = request.timeline_first + of.timeline;
    unit = run_compute_unit(program, request);
  }
  if (!unit) return std::unexpected(std::format("workgroup {}: {}", seed.workgroup, unit.error()));
  TimedUnit timed;
  const std::uint64_t places = units_of(program.target()) * of.resident;
  timed.cycles = place_cycles(*unit, resident, of.shape.waves, of.workgroups <= places);
  for (const SimdResult& simd : unit->simds) timed.pipes += simd.matrix_busy;
  timed.pipes /= resident;
  // What place_cycles counts as the next one's burden is none of the end.
  const std::uint64_t burden = timed.cycles > unit->cycles ? timed.cycles - unit->cycles : 0;
  timed.write_back = unit->write_back_cycles - std::min(unit->write_back_cycles, burden);
  timed.unit = std::move(*unit);
  return timed;
}

std::expected<TimedUnit, std::string> time_unit(Program& program, const Seed& seed, const TimeOfUnit& of) {
  const std::uint64_t units = units_of(program.target());
  const std::uint64_t alike =
      std::max<std::uint64_t>(as_busy_as(seed, of.workgroups, of.survey, units * of.resident), 1);
  const auto resident = static_cast<unsigned>(std::clamp<std::uint64_t>((alike + units - 1) / units, 1, of.resident));
  auto fullest = time_unit_of(program, seed, of, alike, resident);
  if (!fullest || resident == 1 || alike % units == 0) return fullest;
  // Other units have one workgroup less. They are timed as if no unit had more: a launch of so many takes that long, and
  // more work takes no less.
  auto other = time_unit_of(program, seed, of, alike, resident - 1);
  return !other || other->cycles > fullest->cycles ? std::move(other) : std::move(fullest);
}

// Whether the busiest of memory's levels and LDS needs longer than the matrix pipes.
bool memory_decides(const ComputeUnitResult& unit) {
  return static_cast<double>(unit.busiest_cycles) > unit.matrix_busy() * static_cast<double>(unit.cycles);
}

// How long workgroups behind full rounds hold their places; nullopt: as long as all others. Those before them have to end
// together, so workgroups have to be alike; and memory has to decide how long they take.
std::expected<LastRound<Durations>, std::string> time_last_round(Program& program, TimeOfUnit of,
                                                                 std::span<const Seed> seeds, const GridResult& grid) {
  constexpr double alike = 1.1;
  const std::uint64_t places = units_of(program.target()) * of.resident;
  const auto [least, most] = std::ranges::minmax(grid.sample, {}, &SampledTime::cycles);
  if (of.workgroups < places || of.workgroups % places == 0 ||
      static_cast<double>(most.cycles) > alike * static_cast<double>(least.cycles) ||
      !std::ranges::all_of(grid.units, memory_decides))
    return {};
  of.workgroups %= places;
  of.timeline = 0;
  std::vector<SampledTime> cycles;
  for (const SampledTime& full : grid.sample) {
    const auto seed = std::ranges::find(seeds, full.workgroup, &Seed::workgroup);
    const auto timed = time_unit(program, *seed, of);
    if (!timed) return std::unexpected(timed.error());
    cycles.push_back({.workgroup = full.workgroup, .cycles = std::min(timed->cycles, full.cycles)});
  }
  return LastRound<Durations>{.workgroups = of.workgroups, .durations = Durations(cycles, of.shape.workgroups)};
}

// A reason not to believe the result; empty: none.
std::string doubt_of(const GridResult& grid, const Program& program) {
  const bool has_matrix = std::ranges::contains(program.steps(), Kind::matrix, &Step::kind);
  const auto ran_none = [](const ComputeUnitResult& unit) { return unit.matrix_busy() == 0; };
  if (!has_matrix || !std::ranges::all_of(grid.units, ran_none)) return {};
  return std::format(
      "the kernel has matrix instructions, and none of the {} workgroups that were timed of {} ran one: either the "
      "launch has nothing to do, or those that do its work are not among them",
      grid.units.size(), grid.workgroups);
}

}  // namespace

std::uint64_t cold_cycles(const timing::Timing& timing) {
  return static_cast<std::uint64_t>(std::max(
      timing.wave.cold_code.value + timing.memory.cold_arguments.value - timing.memory.scalar_latency.value, 0.0));
}

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
  const LaunchSharing sharing(target, shape, program.timing().memory, seeds, traces, survey == nullptr, memory,
                              grid.resident);
  double shared_lines = 0;
  std::size_t with_neighbours = 0;
  double steady = 0;
  std::vector<SampledTime> pipe_cycles;  // of each of the sample
  double write_back = 0;
  TimeOfUnit of{.shape = shape,
                .sharing = sharing,
                .survey = survey,
                .workgroups = grid.workgroups,
                .resident = grid.resident,
                .timeline = 0};
  for (const Seed& seed : seeds) {
    if (sharing.trace_of(seed.workgroup) == nullptr) continue;
    if (const auto part = sharing.shared_part(seed)) {
      shared_lines += *part;
      ++with_neighbours;
    }
    of.timeline = grid.units.empty() ? timeline : 0;
    auto timed = time_unit(program, seed, of);
    if (!timed) return std::unexpected(timed.error());
    grid.sample.push_back({.workgroup = seed.workgroup, .cycles = timed->cycles});
    pipe_cycles.push_back({.workgroup = seed.workgroup, .cycles = timed->pipes});
    write_back += static_cast<double>(timed->write_back);
    steady += timed->unit.steady_matrix_busy();
    grid.units.push_back(std::move(timed->unit));
  }
  if (grid.units.empty()) return std::unexpected("no workgroup was taken down");
  const auto timed = static_cast<double>(grid.units.size());
  grid.doubt = doubt_of(grid, program);
  grid.shared_lines = with_neighbours == 0 ? 0 : shared_lines / static_cast<double>(with_neighbours);
  grid.steady_matrix_busy = steady / timed;
  Dispatch all;
  if (survey == nullptr) {
    const auto last = time_last_round(program, of, seeds, grid);
    if (!last) return std::unexpected(last.error());
    all = dispatch(program, shape, grid.resident, Durations(grid.sample, shape.workgroups),
                   Durations(pipe_cycles, shape.workgroups), *last);
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
