// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/checkers/clock/report.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

#include "boards/board.h"
#include "simgpu/checkers/clock/roofline.h"

namespace wavejit::simgpu::clock {
namespace {

using Json = nlohmann::json;

Json by_cause(const CyclesByCause& cycles) {
  Json json = Json::object();
  for (std::size_t i = 0; i < cause_count; ++i) {
    if (cycles[i] != 0) json[std::string(to_text(static_cast<Cause>(i)))] = cycles[i];
  }
  return json;
}

void add(CyclesByCause& to, const CyclesByCause& from) {
  for (std::size_t i = 0; i < cause_count; ++i) to[i] += from[i];
}

std::uint64_t sum(const CyclesByCause& cycles) {
  return std::accumulate(cycles.begin(), cycles.end(), std::uint64_t{0});
}

std::vector<StepCount> steps_of(const GridResult& grid, std::size_t count) {
  std::vector<StepCount> all(count);
  for (const ComputeUnitResult& unit : grid.units) {
    for (std::size_t i = 0; i < unit.steps.size(); ++i) {
      all[i].issued += unit.steps[i].issued;
      add(all[i].waited, unit.steps[i].waited);
    }
  }
  return all;
}

Json instructions_json(const std::vector<StepCount>& steps, const Program& program) {
  std::vector<std::size_t> order(steps.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::greater<>(), [&](std::size_t i) { return sum(steps[i].waited); });
  constexpr std::size_t most = 20;
  Json json = Json::array();
  for (const std::size_t i : std::span(order).first(std::min(order.size(), most))) {
    if (sum(steps[i].waited) == 0) break;
    const Instruction& instruction = *program.steps()[i].instruction;
    json.push_back({{"offset", instruction.offset_in_function},
                    {"text", instruction.function->text(instruction)},
                    {"kind", to_text(program.steps()[i].kind)},
                    {"issued", steps[i].issued},
                    {"waited", by_cause(steps[i].waited)}});
  }
  return json;
}

Json clusters_json(const std::vector<StepCount>& steps, const Program& program) {
  Json json = Json::array();
  unsigned barriers = 0;
  for (const Cluster& cluster : clusters_of(program)) {
    // A barrier is the last of its cluster.
    const unsigned stretch = barriers;
    if (program.steps()[cluster.last].kind == Kind::barrier) ++barriers;
    StepCount total;
    std::uint64_t matrix = 0;
    Json kinds = Json::object();
    unsigned from_zero = 0;
    for (std::uint32_t i = cluster.first; i <= cluster.last; ++i) {
      const Step& step = program.steps()[i];
      Json& kind = kinds[std::string(to_text(step.kind))];
      kind = kind.is_null() ? 1 : kind.get<unsigned>() + 1;
      // A product begins: C is no register.
      if (step.kind == Kind::matrix && step.accumulator.count == 0) ++from_zero;
      total.issued += steps[i].issued;
      add(total.waited, steps[i].waited);
      matrix += steps[i].issued * static_cast<std::uint64_t>(program.steps()[i].pipe_cycles);
    }
    if (total.issued == 0) continue;
    json.push_back({{"first", program.steps()[cluster.first].instruction->offset_in_function},
                    {"last", program.steps()[cluster.last].instruction->offset_in_function},
                    {"issued", total.issued},
                    {"matrix_cycles", matrix},
                    {"stretch", stretch},
                    {"kinds", kinds},
                    {"matrix_from_zero", from_zero},
                    {"waited", by_cause(total.waited)}});
  }
  return json;
}

// Cycles in which the SIMDs issued scalar instructions.
std::uint64_t scalar_busy(const std::vector<StepCount>& steps, const Program& program) {
  std::uint64_t issued = 0;
  for (std::size_t i = 0; i < steps.size(); ++i)
    if (program.steps()[i].unit == Unit::scalar) issued += steps[i].issued;
  return issued * static_cast<std::uint64_t>(program.timing().wave.look.cycles());
}

// By kind: how many stand in the code, and how many waves of the sample issued.
Json mix_json(const std::vector<StepCount>& steps, const Program& program) {
  Json json = Json::object();
  for (std::size_t i = 0; i < steps.size(); ++i) {
    Json& kind = json[std::string(to_text(program.steps()[i].kind))];
    if (kind.is_null()) kind = {{"static", 0}, {"issued", 0}};
    kind["static"] = kind["static"].get<std::uint64_t>() + 1;
    kind["issued"] = kind["issued"].get<std::uint64_t>() + steps[i].issued;
  }
  return json;
}

// Registers and kinds of instructions of all functions that ran: what a compiler's own report would say.
Json static_json(const KernelInfo& kernel, const Program& program) {
  std::set<const Function*> functions;
  std::uint64_t code_bytes = 0;
  for (const Step& step : program.steps())
    if (functions.insert(step.instruction->function).second) code_bytes += step.instruction->function->bytes;
  return {{"vgprs", kernel.vgprs},
          {"agprs", kernel.agprs},
          {"sgprs", kernel.sgprs},
          {"private_bytes", kernel.private_bytes},
          {"kernarg_bytes", kernel.kernarg_bytes},
          {"code_bytes", code_bytes},
          {"instructions", program.steps().size()}};
}

// Part of the matrix pipes' cycles that were busy, by time, in at most this many pieces.
Json matrix_over_time_json(const ComputeUnitResult& unit) {
  constexpr std::uint64_t most = 240;
  const std::uint64_t all = (unit.cycles + ComputeUnitResult::bucket_cycles - 1) / ComputeUnitResult::bucket_cycles;
  const std::uint64_t together = std::max<std::uint64_t>((all + most - 1) / most, 1);
  Json busy = Json::array();
  for (std::uint64_t first = 0; first < all; first += together) {
    std::uint64_t cycles = 0;
    for (std::uint64_t i = first; i < std::min<std::uint64_t>(first + together, unit.matrix_buckets.size()); ++i)
      cycles += unit.matrix_buckets[i];
    const std::uint64_t length = std::min(unit.cycles, (first + together) * ComputeUnitResult::bucket_cycles) -
                                 (first * ComputeUnitResult::bucket_cycles);
    busy.push_back(static_cast<double>(cycles) / static_cast<double>(length * unit.simds.size()));
  }
  return {{"cycles", together * ComputeUnitResult::bucket_cycles}, {"busy", busy}};
}

}  // namespace

std::vector<Cluster> clusters_of(const Program& program) {
  const std::vector<Step>& steps = program.steps();
  std::set<const Instruction*> targets;
  for (const Step& step : steps) {
    if (step.instruction->target != nullptr) targets.insert(step.instruction->target);
  }
  std::vector<Cluster> clusters;
  bool begins = true;
  for (std::uint32_t i = 0; i < steps.size(); ++i) {
    const bool new_function = i > 0 && steps[i].instruction->function != steps[i - 1].instruction->function;
    if (begins || new_function || targets.contains(steps[i].instruction)) clusters.push_back({.first = i, .last = i});
    clusters.back().last = i;
    begins = steps[i].kind == Kind::branch || steps[i].kind == Kind::barrier;
  }
  return clusters;
}

std::string refusal_json(const std::string& kernel, const boards::Board& target, const std::string& reason) {
  return Json({{"kernel", kernel}, {"target", target.id}, {"refused", reason}})
      .dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string grid_json(const KernelInfo& kernel, const GridShape& shape, const GridResult& grid,
                      const Program& program) {
  CyclesByCause waited{};
  CyclesByCause idle{};
  SimdResult simds;
  MemoryCounts memory;
  std::uint64_t unit_cycles = 0;
  std::uint64_t lds_busy = 0;
  std::uint64_t lds_lost = 0;
  std::uint64_t address_busy = 0;
  std::uint64_t wave_cycles = 0;
  std::uint64_t issued = 0;
  for (const ComputeUnitResult& unit : grid.units) {
    unit_cycles += unit.cycles;
    lds_busy += unit.lds_busy;
    lds_lost += unit.lds_lost;
    address_busy += unit.address_busy;
    for (const WaveResult& wave : unit.waves) {
      add(waited, wave.waited);
      wave_cycles += wave.end - wave.start;
      issued += wave.issued;
    }
    for (const SimdResult& simd : unit.simds) {
      simds.matrix_busy += simd.matrix_busy;
      simds.port_busy += simd.port_busy;
      simds.overlapped += simd.overlapped;
      simds.empty += simd.empty;
      add(idle, simd.idle);
    }
    memory.lines += unit.memory.lines;
    memory.l1_hits += unit.memory.l1_hits;
    memory.l2_hits += unit.memory.l2_hits;
    memory.mall_hits += unit.memory.mall_hits;
    memory.memory += unit.memory.memory;
    memory.written += unit.memory.written;
  }
  Json sample = Json::array();
  for (const SampledTime& time : grid.sample)
    sample.push_back({{"workgroup", time.workgroup}, {"cycles", time.cycles}});
  const std::vector<StepCount> steps = steps_of(grid, program.steps().size());
  Json json = {
      {"kernel", kernel.name},
      {"target", program.target().id},
      {"predicted", true},  // never measured
      {"grid", shape.workgroups},
      {"waves_of_workgroup", shape.waves},
      {"vgprs", shape.vgprs},
      {"lds_bytes", shape.lds_bytes},
      {"static", static_json(kernel, program)},
      {"occupancy",
       {{"workgroups", grid.occupancy.workgroups}, {"limited_by", grid.occupancy.limit}, {"resident", grid.resident}}},
      {"cycles", grid.cycles},
      {"clock_khz", program.target().clock_khz},
      {"cold_cycles", grid.cold_cycles},
      {"write_back_cycles", grid.write_back_cycles},
      {"dependent_launch_cycles", program.timing().launch.dependent.cycles()},
      {"matrix_busy", grid.matrix_busy},
      {"steady_matrix_busy", grid.steady_matrix_busy},
      {"places_taken", grid.busy},
      {"shared_lines", grid.shared_lines},
      {"sample", sample},
      {"compute_unit",
       {{"cycles", unit_cycles},
        {"matrix_busy", simds.matrix_busy},
        {"port_busy", simds.port_busy},
        {"port_beside_matrix", simds.overlapped},
        {"empty", simds.empty},
        {"idle", by_cause(idle)},
        {"lds_busy", lds_busy},
        {"lds_lost", lds_lost},
        {"address_busy", address_busy},
        {"scalar_busy", scalar_busy(steps, program)},
        {"simds", grid.units.front().simds.size()}}},
      {"waves", {{"cycles", wave_cycles}, {"issued", issued}, {"waited", by_cause(waited)}}},
      {"memory",
       {{"lines", memory.lines},
        {"l1_hits", memory.l1_hits},
        {"l2_hits", memory.l2_hits},
        {"last_level_hits", memory.mall_hits},
        {"memory", memory.memory},
        {"written", memory.written}}},
      {"roofline", roofline_json(grid, steps, program)},
      {"matrix_over_time", matrix_over_time_json(grid.units.front())},
      {"mix", mix_json(steps, program)},
      {"instructions", instructions_json(steps, program)},
      {"clusters", clusters_json(steps, program)}};
  if (!grid.doubt.empty()) json["doubt"] = grid.doubt;
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace wavejit::simgpu::clock
