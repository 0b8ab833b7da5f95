// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/checkers/clock/step.h"

#include <algorithm>
#include <format>
#include <set>
#include <span>

#include "boards/board.h"
#include "isa/matrix.h"
#include "simgpu/checkers/facts/hazard_rules.h"
#include "simgpu/machine/wave/wave.h"

namespace wavejit::simgpu::clock {
namespace {

Unit unit_of(const Step& step) {
  switch (step.kind) {
    case Kind::lds_read:
    case Kind::lds_write:
    case Kind::lds_lanes:
      return Unit::lds;
    case Kind::lds_dma:
    case Kind::load:
    case Kind::store:
      return Unit::memory;
    case Kind::branch:
      return Unit::branch;
    case Kind::wait:
    case Kind::barrier:
      return Unit::internal;
    case Kind::scalar_load:
      return Unit::scalar;
    case Kind::scalar:
      return step.effects.scalar_alu ? Unit::scalar : Unit::internal;
    default:
      return Unit::vector;
  }
}

int interval_of(const Step& step, const timing::Timing& timing) {
  const timing::WaveRules& rules = timing.wave;
  switch (step.unit) {
    case Unit::vector:
      // In an ordered queue the wave goes on at once.
      return timing.ordered.known() ? rules.look.cycles() : step.port_cycles;
    case Unit::lds:
      return rules.lds_issue.cycles();
    case Unit::memory:
      return rules.memory_issue.cycles();
    default:
      break;
  }
  if (step.effects.action == Action::nop) return step.effects.wait_states * rules.nop.cycles();
  if (step.effects.action == Action::sleep) {
    constexpr std::uint32_t count_bits = 0x7f;
    return rules.look.cycles() + (rules.sleep.cycles() * static_cast<int>(step.instruction->immediate & count_bits));
  }
  return rules.look.cycles();
}

// Registers that a pair takes from one bank leave it one after the other; what other instructions read is gathered
// ahead.
int fetch_cycles(const checks::Effects& effects, const timing::OrderedRules& rules) {
  if (effects.action != Action::dual) return 0;
  std::vector<std::set<unsigned>> banks(static_cast<std::size_t>(rules.banks.cycles()));
  for (const checks::Registers& range : std::span(effects.reads).first(effects.read_count)) {
    for (unsigned r = range.first; !range.scalar && r < unsigned{range.first} + range.count; ++r)
      banks[r % banks.size()].insert(r);
  }
  const auto most = std::ranges::max(banks, {}, &std::set<unsigned>::size).size();
  return std::max(static_cast<int>(most) - 1, 0);
}

}  // namespace

const timing::LdsAccess* nearest_access(const timing::Timing& timing, const Instruction& instruction,
                                        const checks::Effects& effects) {
  const std::string name = lds_access_name(instruction);
  if (const timing::LdsAccess* exact = timing::find_lds_access(timing, name); exact != nullptr) return exact;
  const int width = effects.bytes > 8 ? 128 : (effects.bytes > 4 ? 64 : 32);
  const auto row_of = [&](std::string_view head) {
    const timing::LdsAccess* row = timing::find_lds_access(timing, std::format("{}_b{}", head, width));
    return row != nullptr ? row : timing::find_lds_access(timing, std::format("{}_b32", head));
  };
  if (effects.lds_dma) return row_of("lds_dma");
  // CDNA's names, or RDNA4's.
  const timing::LdsAccess* row = row_of(effects.stores ? "ds_write" : "ds_read");
  return row != nullptr ? row : row_of(effects.stores ? "ds_store" : "ds_load");
}

Step describe_step(const Instruction& instruction, const timing::Timing& timing, const targets::Target& target) {
  Step step;
  step.instruction = &instruction;
  step.effects = checks::describe(instruction);
  step.kind = kind_of(instruction);
  step.unit = unit_of(step);
  step.port_cycles = port_cycles(step.kind, instruction, timing.issue);
  step.interval = interval_of(step, timing);
  step.no_overlap = step.kind == Kind::packed;
  if (step.kind == Kind::matrix) {
    const int passes = static_cast<int>(checks::matrix_passes(instruction, isa::matrix_pipe(target)));
    const int pass = timing.wave.pass.cycles();
    step.pipe_cycles = passes * pass;
    step.result_cycles = (passes + timing.wave.result_states.cycles()) * pass;
    // No vector instruction runs beside one with f32 or f64 inputs.
    if (checks::matrix_product(instruction) != checks::Product::matrix) step.port_cycles = step.pipe_cycles;
    if (timing.ordered.known()) step.port_cycles = step.pipe_cycles;
    const Operand& c = instruction.source[2];
    if (c.is_vector()) step.accumulator = {.first = c.index, .count = c.dwords, .scalar = false};
  }
  if (step.unit == Unit::lds || step.effects.lds_dma) {
    step.access = nearest_access(timing, instruction, step.effects);
  }
  step.writes_scalars = std::ranges::any_of(std::span(step.effects.writes).first(step.effects.write_count),
                                            [](const checks::Registers& range) { return range.scalar; });
  if (timing.ordered.known()) {
    step.transcendental_unit = step.kind == Kind::transcendental && step.effects.action != Action::scalar_function;
    step.ahead = step.effects.action == Action::wait_alu || step.effects.action == Action::delay_alu;
    for (const checks::Registers& range : std::span(step.effects.reads).first(step.effects.read_count)) {
      step.data_cycles += range.scalar ? 0 : range.count;
      step.reads_scalars = step.reads_scalars || (range.scalar && step.unit == Unit::vector);
    }
    step.fetch_cycles = fetch_cycles(step.effects, timing.ordered);
    step.data_cycles = std::max(step.data_cycles, 1);
  }
  step.ends_wave = step.effects.action == Action::end;
  return step;
}

std::uint32_t Program::find(const Instruction& instruction) {
  if (instruction.function != last_) {
    last_ = instruction.function;
    const auto [place, is_new] = first_.try_emplace(last_, static_cast<std::uint32_t>(steps_.size()));
    last_first_ = place->second;
    if (is_new) {
      for (const Instruction& each : last_->instructions) steps_.push_back(describe_step(each, *timing_, *target_));
    }
  }
  return last_first_ + static_cast<std::uint32_t>(&instruction - last_->instructions.data());
}

}  // namespace wavejit::simgpu::clock
