// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Instructions that look across lanes or swap registers.
#include <utility>

#include "simgpu/machine/vector/execute.h"

namespace wavejit::simgpu::vector {
namespace {

unsigned lane_select(const Wave& wave, const Operand& operand) { return wave.scalar(operand) & (wave.lane_count - 1); }

void execute_readlane(Wave& wave, const Instruction& instruction) {
  const unsigned lane = lane_select(wave, instruction.source[1]);
  wave.set_scalar(instruction.destination[0], wave.vgpr[instruction.source[0].index][lane]);
}

void execute_readfirstlane(Wave& wave, const Instruction& instruction) {
  const Operand& source = instruction.source[0];
  const std::uint64_t exec = wave.exec();
  const unsigned lane = exec == 0 ? 0 : static_cast<unsigned>(std::countr_zero(exec));
  const std::uint32_t value = source.is_vector() ? wave.vgpr[source.index][lane] : wave.scalar(source);
  wave.set_scalar(instruction.destination[0], value);
}

void execute_writelane(Wave& wave, const Instruction& instruction) {
  const unsigned lane = lane_select(wave, instruction.source[1]);
  wave.vgpr[instruction.destination[0].index][lane] = wave.scalar(instruction.source[0]);
}

// Two registers that are both read and written: the second may be listed as a destination or as a source.
const Operand& partner(const Instruction& instruction) {
  return instruction.destination_count == 2 ? instruction.destination[1] : instruction.source[0];
}

void execute_swap(Wave& wave, const Instruction& instruction) {
  std::uint32_t* a = wave.vgpr[instruction.destination[0].index];
  std::uint32_t* b = wave.vgpr[partner(instruction).index];
  for_active_lanes(wave.exec(), [&](unsigned lane) { std::swap(a[lane], b[lane]); });
}

// Lanes `Half`… of the first register change places with lanes 0… of the second; in groups of twice `Half`. EXEC is
// ignored (seen with AMD's own kernels).
template <unsigned Half>
void execute_permlane_swap(Wave& wave, const Instruction& instruction) {
  std::uint32_t* first = wave.vgpr[instruction.destination[0].index];
  std::uint32_t* second = wave.vgpr[partner(instruction).index];
  for (unsigned group = 0; group < wave.lane_count; group += 2 * Half) {
    for (unsigned lane = 0; lane < Half; ++lane) std::swap(first[group + Half + lane], second[group + lane]);
  }
}

void execute_nothing(Wave& /*wave*/, const Instruction& /*instruction*/) {}

template <bool High>
void execute_mbcnt(Wave& wave, const Instruction& instruction) {
  std::uint32_t masks[lane_places];
  std::uint32_t starts[lane_places];
  const std::uint32_t* mask = wave.lanes(instruction.source[0], masks);
  const std::uint32_t* start = wave.lanes(instruction.source[1], starts);
  std::uint32_t* result = wave.vgpr[instruction.destination[0].index];
  for_active_lanes(wave.exec(), [&](unsigned lane) {
    const std::uint64_t below = (std::uint64_t{1} << lane) - 1;
    const auto half = static_cast<std::uint32_t>(High ? below >> 32 : below);
    result[lane] = start[lane] + static_cast<std::uint32_t>(std::popcount(mask[lane] & half));
  });
}

// The two source words chosen by op_sel become a pair (CDNA3 ISA, V_PK_MOV_B32).
void execute_pk_mov(Wave& wave, const Instruction& instruction) {
  std::uint32_t low[lane_places];
  std::uint32_t high[lane_places];
  const auto word = [&](unsigned index, std::uint32_t (&block)[lane_places]) {
    const Operand& operand = instruction.source[index];
    const unsigned dword = (instruction.op_sel >> index) & 1;
    std::uint32_t scalar[lane_places];
    const std::uint32_t* from = wave.lanes(operand, scalar, dword);
    // A constant has no second word: as a 64-bit integer operand it is sign-extended.
    const bool upper_of_constant = operand.is_constant() && dword == 1;
    const std::uint32_t upper = static_cast<std::uint32_t>(operand.is_constant() ? operand.constant_b64() >> 32 : 0);
    for (unsigned lane = 0; lane < lane_places; ++lane) block[lane] = upper_of_constant ? upper : from[lane];
  };
  word(0, low);
  word(1, high);
  std::uint32_t* result = wave.vgpr[instruction.destination[0].index];
  for_active_lanes(wave.exec(), [&](unsigned lane) {
    result[lane] = low[lane];
    result[lane + lane_places] = high[lane];
  });
}

}  // namespace

void register_lane_instructions(Registry& registry) {
  registry.add("v_readlane_b32", &execute_readlane, {.action = Action::read_lane, .all_lanes = true});
  registry.add("v_readfirstlane_b32", &execute_readfirstlane, {.action = Action::read_first_lane});
  registry.add("v_writelane_b32", &execute_writelane,
               {.action = Action::write_lane, .keeps_destination = true, .all_lanes = true});
  registry.add("v_swap_b32", &execute_swap, {.action = Action::swap, .flow = Flow::move});
  constexpr Record swaps_lanes{
      .kind = IssueKind::lane_swap, .action = Action::lane_swap, .flow = Flow::move, .all_lanes = true};
  registry.add("v_permlane16_swap_b32", &execute_permlane_swap<16>, swaps_lanes);
  registry.add("v_permlane32_swap_b32", &execute_permlane_swap<32>, swaps_lanes);
  registry.add("v_mbcnt_lo_u32_b32", &execute_mbcnt<false>, {});
  registry.add("v_mbcnt_hi_u32_b32", &execute_mbcnt<true>, {});
  registry.add("v_pk_mov_b32", &execute_pk_mov, {.flow = Flow::move});
  registry.add("v_nop", &execute_nothing, {});
  registry.add("v_clrexcp", &execute_nothing, {});
}

}  // namespace wavejit::simgpu::vector
