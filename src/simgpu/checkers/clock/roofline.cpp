// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/checkers/clock/roofline.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string>

#include "boards/board.h"
#include "simgpu/machine/matrix/matrix_kernel.h"

namespace wavejit::simgpu::clock {
namespace {

using Json = nlohmann::json;

Json level_json(std::string_view name, std::uint64_t lines, double rate, const timing::Figure& figure,
                const timing::Timing& timing) {
  return {{"name", name},
          {"bytes", static_cast<double>(lines) * timing.memory.line.value},
          {"bytes_a_cycle", rate},
          {"grade", timing::to_text(figure.grade)},
          {"source", figure.source}};
}

}  // namespace

std::uint64_t matrix_operations(const Instruction& instruction) {
  const matrix::Shape* shape = instruction.record->shape;
  return shape == nullptr ? 0 : std::uint64_t{2} * shape->m * shape->m * shape->k * shape->blocks;
}

Json roofline_json(const GridResult& grid, std::span<const StepCount> steps, const Program& program) {
  const timing::Timing& timing = program.timing();
  const boards::Board& target = program.target();
  double operations = 0;
  double pipe_cycles = 0;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const Step& step = program.steps()[i];
    if (step.kind != Kind::matrix) continue;
    const auto issued = static_cast<double>(steps[i].issued);
    operations += issued * static_cast<double>(matrix_operations(*step.instruction));
    pipe_cycles += issued * step.pipe_cycles;
  }
  std::uint64_t cycles = 0;
  MemoryCounts memory;
  for (const ComputeUnitResult& unit : grid.units) {
    cycles += unit.cycles;
    memory.lines += unit.memory.lines;
    memory.of_l1 += unit.memory.of_l1;
    memory.l1_hits += unit.memory.l1_hits;
    memory.mall_hits += unit.memory.mall_hits;
    memory.memory += unit.memory.memory;
    memory.written += unit.memory.written;
  }
  // What a compute unit gets when all that have work want the same.
  const int together = boards::compute_units_of_place(target);
  const auto units = static_cast<double>(std::min<std::uint64_t>(grid.workgroups, target.compute_units / together));
  const double units_of_die = std::max(1.0, units / target.xcds);
  const timing::MemoryRules& rules = timing.memory;
  Json json = {
      {"operations", operations},
      {"cycles", cycles},
      {"levels",
       {level_json("L1", static_cast<std::uint64_t>(memory.of_l1), rules.l1_rate.value * together, rules.l1_rate,
                   timing),
        level_json("L2", memory.lines - memory.l1_hits, rules.l2_rate.value / units_of_die, rules.l2_rate, timing),
        level_json("last level cache", memory.mall_hits + memory.memory + memory.written,
                   rules.mall_rate.value / units_of_die, rules.mall_rate, timing),
        level_json("memory", memory.memory + memory.written, rules.memory_rate.value / units, rules.memory_rate,
                   timing)}}};
  if (pipe_cycles > 0) {
    json["pipe"] = {{"operations_a_cycle", operations / pipe_cycles * target.simds_per_compute_unit * together},
                    {"grade", timing::to_text(timing.wave.pass.grade)},
                    {"source", timing.wave.pass.source}};
  }
  return json;
}

}  // namespace wavejit::simgpu::clock
