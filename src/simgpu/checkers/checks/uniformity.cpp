// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Lanes that speak for others: v_readfirstlane of a value that differs between lanes.
#include <algorithm>
#include <bit>
#include <format>

#include "simgpu/checkers/checks/workgroup_checks.h"
#include "simgpu/machine/launch/finding.h"

namespace wavejit::simgpu::checks {
namespace {

// A waterfall loop takes the first lane's value and then masks the lanes that have another one (LLVM,
// SIInstrInfo::legalizeOperands): the value is compared with the register it came from.
bool begins_waterfall(const Instruction& instruction) {
  constexpr unsigned distance = 16;
  const Instruction* next = &instruction + 1;
  const Instruction* end = instruction.function->instructions.data() + instruction.function->instructions.size();
  const Operand& scalar = instruction.destination[0];
  const Operand& vector = instruction.source[0];
  for (unsigned i = 0; i < distance && next < end; ++i, ++next) {
    if (!next->record->compares_equal) continue;
    const auto covers = [](const Operand& operand, const Operand& part) {
      return operand.kind == part.kind && part.index >= operand.index && part.index < operand.index + operand.dwords;
    };
    const bool has_scalar = covers(next->source[0], scalar) || covers(next->source[1], scalar);
    const bool has_vector = covers(next->source[0], vector) || covers(next->source[1], vector);
    if (has_scalar && has_vector) return true;
  }
  return false;
}

std::uint32_t bits_looked_at(const Instruction& instruction, unsigned depth = 0);

// Which bits of a scalar source `next` looks at, when its other source is a constant.
std::uint32_t bits_in_window(const Instruction& next, unsigned depth) {
  constexpr unsigned deepest = 4;
  const auto constant = static_cast<std::uint32_t>(next.source[1].bits);
  const unsigned width = std::min((constant >> 16) & 0x7f, 32U);  // of a field
  const unsigned shift = constant & 31;
  // The bits that count of a result that others shift or mask in turn.
  const auto passed_on = [&] { return depth < deepest ? bits_looked_at(next, depth + 1) : ~0U; };
  switch (next.record->window) {
    case Window::above_shift: {
      const std::uint32_t bits = passed_on();
      const std::uint32_t sign = (bits >> (31 - shift)) != 0 ? 1U << 31 : 0;  // may fill what comes in
      return (bits << shift) | sign;
    }
    case Window::below_shift:
      return passed_on() >> shift;
    case Window::in_mask:
      return constant;
    case Window::in_field:
      return static_cast<std::uint32_t>(((std::uint64_t{1} << width) - 1) << shift);
    case Window::one_bit:
      return 1U << shift;
    case Window::all:
      break;
  }
  return ~0U;
}

// The bits of a scalar result that anything looks at, as far as the instructions that follow in the function say: a
// wave's number is the first work-item's id, shifted or masked, and the bits that differ between lanes fall away.
std::uint32_t bits_looked_at(const Instruction& instruction, unsigned depth) {
  const Function& function = *instruction.function;
  const FunctionEffects& effects = effects_of(function);
  const unsigned result = instruction.destination[0].index;
  const auto includes_result = [&](const Registers& range) {
    return range.scalar && result >= range.first && result < range.first + unsigned{range.count};
  };
  std::uint32_t bits = 0;
  for (auto at = static_cast<std::size_t>(&instruction - function.instructions.data()) + 1;
       at < function.instructions.size() && bits != ~0U; ++at) {
    const Instruction& next = function.instructions[at];
    const Effects& of = effects[at];
    if (std::any_of(of.reads.begin(), of.reads.begin() + of.read_count, includes_result)) {
      const bool is_first = next.source_count == 2 && next.source[0].is_scalar() && next.source[0].index == result &&
                            next.source[0].dwords == 1 && next.source[1].is_constant();
      bits |= is_first ? bits_in_window(next, depth) : ~0U;
    }
    if (std::any_of(of.writes.begin(), of.writes.begin() + of.write_count, includes_result)) break;
  }
  return bits == 0 ? ~0U : bits;
}

}  // namespace

// Lanes speak for others only where these were given a value along with them: a compiler that lets one lane do an
// atomic reads its result by v_readfirstlane under full EXEC, and what the others hold means nothing (LLVM,
// AMDGPUAtomicOptimizer).
void WorkgroupChecks::check_uniform(Wave& wave, const WaveChecks& checks, const Instruction& instruction) {
  const Operand& source = instruction.source[0];
  const std::uint64_t exec = wave.exec();
  if (!source.is_vector() || exec == 0) return;
  const std::uint32_t* values = wave.vgpr[source.index];
  const auto first = static_cast<unsigned>(std::countr_zero(exec));
  const auto lanes_that_differ = [&](std::uint32_t bits) {
    std::uint64_t lanes = 0;
    for (unsigned lane = 0; lane < lane_places; ++lane) {
      lanes |= std::uint64_t{((values[lane] ^ values[first]) & bits) != 0} << lane;
    }
    return lanes & exec;
  };
  std::uint64_t different = lanes_that_differ(~0U);
  const std::uint64_t written = checks.written_lanes[source.index];
  if (((written >> first) & 1) != 0) different &= written;
  if (different != 0) different &= lanes_that_differ(bits_looked_at(instruction));
  if (different == 0 || begins_waterfall(instruction)) return;
  if (!worth_reporting(wave, instruction, Check::uniform)) return;
  const auto lane = static_cast<unsigned>(std::countr_zero(different));
  report(wave, instruction, Check::uniform, static_cast<int>(lane),
         std::format("lane {} speaks for all and holds {:#x}; lane {} holds {:#x}", first, values[first], lane,
                     values[lane]));
}

}  // namespace wavejit::simgpu::checks
