#include "simgpu/clock/grid.h"

#include <algorithm>
#include <format>
#include <limits>
#include <queue>

#include "targets/targets.h"

namespace wavejit::simgpu::clock {
namespace {

std::unordered_set<uint64_t> lines_of(const WorkgroupTrace& trace) {
  std::unordered_set<uint64_t> lines;
  for (const WaveTrace& wave : trace.waves) lines.insert(wave.lines.begin(), wave.lines.end());
  return lines;
}

// Workgroups go round the dies by linear id; on a die each goes to the place that is free first.
struct Dispatch {
  uint64_t cycles = 0;
  uint64_t taken = 0;  ///< cycles of all places
};
Dispatch dispatch(const targets::Target& target, const GridShape& shape, unsigned resident,
                  const std::vector<SampledTime>& sample) {
  const auto dies = static_cast<uint64_t>(target.xcds);
  const uint64_t places = static_cast<uint64_t>(target.compute_units) / dies * resident;
  const Durations durations(sample, shape.workgroups);
  Dispatch all;
  for (uint64_t die = 0; die < dies; ++die) {
    std::priority_queue<uint64_t, std::vector<uint64_t>, std::greater<>> free;
    for (uint64_t i = 0; i < places; ++i) free.push(0);
    for (uint64_t workgroup = die; workgroup < shape.total(); workgroup += dies) {
      const uint64_t cycles = durations.of(workgroup);
      const uint64_t end = free.top() + cycles;
      free.pop();
      free.push(end);
      all.cycles = std::max(all.cycles, end);
      all.taken += cycles;
    }
  }
  return all;
}

}  // namespace

std::expected<GridResult, std::string> time_grid(Program& program, const GridShape& shape,
                                                 std::span<const WorkgroupTrace> traces, uint64_t timeline) {
  const targets::Target& target = program.target();
  GridResult grid;
  grid.workgroups = shape.total();
  grid.occupancy = occupancy_of(target, shape.vgprs, shape.lds_bytes, shape.waves);
  if (grid.occupancy.workgroups == 0) {
    return std::unexpected(std::format("no workgroup of {} waves with {} registers and {} bytes of LDS fits {}",
                                       shape.waves, shape.vgprs, shape.lds_bytes, target.id));
  }
  const auto units = static_cast<uint64_t>(target.compute_units);
  const auto dies = static_cast<uint64_t>(target.xcds);
  grid.resident =
      static_cast<unsigned>(std::clamp<uint64_t>((grid.workgroups + units - 1) / units, 1, grid.occupancy.workgroups));
  const uint64_t active = std::min(grid.workgroups, units);
  double shared_lines = 0;
  size_t pairs = 0;
  double steady = 0;
  // Of the pipes, and of the workgroups that kept them busy: long ones count for more.
  double matrix_cycles = 0;
  double workgroup_cycles = 0;
  std::vector<bool> paired(traces.size());  // with one before it
  for (size_t i = 0; i < traces.size(); ++i) {
    if (paired[i]) continue;
    // The next on the same die; others of the sample may stand between the two.
    const auto next = std::ranges::lower_bound(traces, traces[i].workgroup + dies, {}, &WorkgroupTrace::workgroup);
    const auto partner = static_cast<size_t>(next - traces.begin());
    const bool has_partner = next != traces.end() && next->workgroup == traces[i].workgroup + dies && !paired[partner];
    if (has_partner) paired[partner] = true;
    ComputeUnitRequest request;
    request.resident = grid.resident;
    request.neighbours.compute_units = static_cast<unsigned>(active);
    request.neighbours.compute_units_of_die = static_cast<unsigned>((active + dies - 1) / dies);
    if (has_partner) {
      const auto here = lines_of(traces[i]);
      for (const uint64_t line : lines_of(traces[partner])) {
        if (here.contains(line)) request.neighbours.shared.insert(line);
      }
      const uint64_t of_die = std::min(grid.workgroups, active * grid.resident) / dies;
      request.neighbours.sharers = static_cast<unsigned>(std::max<uint64_t>(of_die, 1));
      shared_lines += here.empty() ? 0 : static_cast<double>(request.neighbours.shared.size()) / here.size();
      ++pairs;
    }
    for (unsigned r = 0; r < grid.resident; ++r) {
      request.workgroups.push_back(&traces[has_partner && r % 2 == 1 ? partner : i]);
    }
    auto unit = run_compute_unit(program, request);
    if (!unit) return std::unexpected(std::format("workgroup {}: {}", traces[i].workgroup, unit.error()));
    if (timeline != 0 && i == 0) {
      // Where the middle is shows only now; a second run is the same to the cycle.
      request.timeline_first = unit->cycles / 2;
      request.timeline_last = request.timeline_first + timeline;
      unit = run_compute_unit(program, request);
      if (!unit) return std::unexpected(unit.error());
    }
    uint64_t cycles = 0;
    for (unsigned r = 0; r < grid.resident; ++r) {
      uint64_t begin = std::numeric_limits<uint64_t>::max();
      uint64_t end = 0;
      for (unsigned w = 0; w < shape.waves; ++w) {
        const WaveResult& wave = unit->waves[(size_t{r} * shape.waves) + w];
        begin = std::min(begin, wave.start);
        end = std::max(end, wave.end);
      }
      cycles += end - begin;
    }
    cycles = std::max<uint64_t>(cycles / grid.resident, 1);  // none at all, if all that it does is to end
    grid.sample.push_back({.workgroup = traces[i].workgroup, .cycles = cycles});
    uint64_t busy = 0;
    for (const SimdResult& simd : unit->simds) busy += simd.matrix_busy;
    matrix_cycles += static_cast<double>(busy) / grid.resident;
    workgroup_cycles += static_cast<double>(cycles);
    steady += unit->steady_matrix_busy();
    grid.units.push_back(std::move(*unit));
  }
  if (grid.units.empty()) return std::unexpected("no workgroup was taken down");
  const auto timed = static_cast<double>(grid.units.size());
  grid.shared_lines = pairs == 0 ? 0 : shared_lines / static_cast<double>(pairs);
  grid.steady_matrix_busy = steady / timed;
  const Dispatch all = dispatch(target, shape, grid.resident, grid.sample);
  grid.cycles = all.cycles;
  const double places = static_cast<double>(units) * grid.resident * static_cast<double>(all.cycles);
  grid.busy = places == 0 ? 0 : static_cast<double>(all.taken) / places;
  // While a workgroup is there it keeps the pipes of its compute unit busy by so much.
  const double of_workgroup = workgroup_cycles == 0 ? 0 : matrix_cycles / workgroup_cycles;
  grid.matrix_busy = of_workgroup * grid.resident * grid.busy / target.simds_per_compute_unit;
  return grid;
}

}  // namespace wavejit::simgpu::clock
