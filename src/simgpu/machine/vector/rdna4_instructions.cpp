// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RDNA4's vector instructions that look across lanes, move parts of registers or give scalars.
// Semantics: AMD's RDNA4 ISA document.
#include <array>
#include <bit>
#include <cstring>
#include <string>
#include <utility>

#include "simgpu/machine/vector/execute.h"

namespace wavejit::simgpu::vector {
namespace {

// Bits of op_sel of v_permlane16 and its kind.
constexpr unsigned fetches_inactive = 1;
constexpr unsigned bounded = 2;

// Each lane takes what the lane of its row of 16, or of the other row of the pair, holds that `chosen(lane)` names.
template <bool Other, typename Chosen>
void permute_rows(Wave& wave, const Instruction& instruction, Chosen&& chosen) {
  const std::uint32_t* source = wave.vgpr[instruction.source[0].index];
  std::uint32_t* result = wave.vgpr[instruction.destination[0].index];
  std::array<std::uint32_t, lane_places> old;
  std::memcpy(old.data(), source, sizeof(old));
  const std::uint64_t exec = wave.exec();
  for_active_lanes(exec, [&](unsigned lane) {
    const unsigned from = ((lane & ~15u) ^ (Other ? 16u : 0u)) | (chosen(lane) & 15u);
    const bool active = ((exec >> from) & 1) != 0 || (instruction.op_sel & fetches_inactive) != 0;
    if (active) {
      result[lane] = old[from];
    } else if ((instruction.op_sel & bounded) != 0) {
      result[lane] = 0;
    }
  });
}

template <bool Other>
void execute_permlane16(Wave& wave, const Instruction& instruction) {
  const std::uint64_t selectors =
      wave.scalar(instruction.source[1]) | (std::uint64_t{wave.scalar(instruction.source[2])} << 32);
  permute_rows<Other>(wave, instruction,
                      [&](unsigned lane) { return static_cast<unsigned>(selectors >> (4 * (lane & 15))); });
}

template <bool Other>
void execute_permlane16_var(Wave& wave, const Instruction& instruction) {
  std::array<std::uint32_t, lane_places> selectors;
  std::memcpy(selectors.data(), wave.vgpr[instruction.source[1].index], sizeof(selectors));
  permute_rows<Other>(wave, instruction, [&](unsigned lane) { return selectors[lane]; });
}

// The halves of a wave of 64 change places; waves of 32 have none.
void execute_permlane64(Wave& wave, const Instruction& instruction) {
  if (wave.lane_count != lane_places) return;
  std::array<std::uint32_t, lane_places> old;
  std::memcpy(old.data(), wave.vgpr[instruction.source[0].index], sizeof(old));
  std::uint32_t* result = wave.vgpr[instruction.destination[0].index];
  for_active_lanes(wave.exec(), [&](unsigned lane) { result[lane] = old[lane ^ 32u]; });
}

// op_sel: bit 0 the half of the source, bit 3 that of the destination; both are written.
void execute_swap_halves(Wave& wave, const Instruction& instruction) {
  const Operand& second = instruction.destination_count == 2 ? instruction.destination[1] : instruction.source[0];
  std::uint32_t* a = wave.vgpr[instruction.destination[0].index];
  std::uint32_t* b = wave.vgpr[second.index];
  const unsigned at = (instruction.op_sel & 8) != 0 ? 16 : 0;
  const unsigned from = (instruction.op_sel & 1) != 0 ? 16 : 0;
  for_active_lanes(wave.exec(), [&](unsigned lane) {
    const std::uint32_t x = (a[lane] >> at) & 0xffffu;
    const std::uint32_t y = (b[lane] >> from) & 0xffffu;
    a[lane] = (a[lane] & ~(0xffffu << at)) | (y << at);
    b[lane] = (b[lane] & ~(0xffffu << from)) | (x << from);
  });
}

// Registers relative to M0.
template <bool Source, bool Destination>
void execute_movrel(Wave& wave, const Instruction& instruction) {
  const unsigned from = instruction.source[0].index + (Source ? wave.m0() : 0);
  const unsigned to = instruction.destination[0].index + (Destination ? wave.m0() : 0);
  if (from >= accumulation_base || to >= accumulation_base) {
    return fault(wave, instruction, "M0 leaves the vector registers");
  }
  std::uint32_t copies[lane_places];
  const std::uint32_t* values = Source ? wave.vgpr[from] : wave.lanes(instruction.source[0], copies);
  std::uint32_t* result = wave.vgpr[to];
  for_active_lanes(wave.exec(), [&](unsigned lane) { result[lane] = values[lane]; });
}

// v_s_exp_f32 is v_exp_f32 of scalar registers.
constexpr std::array<std::string_view, 10> scalar_functions = {"exp_f32", "log_f32", "rcp_f32", "rsq_f32", "sqrt_f32",
                                                               "exp_f16", "log_f16", "rcp_f16", "rsq_f16", "sqrt_f16"};
template <std::size_t Function>
Handler select_on_scalars(Instruction& instruction) {
  const Bound* bound = find_rdna4("v_" + std::string(scalar_functions[Function]));
  if (bound == nullptr || instruction.source_count != 1) return nullptr;
  if (choose_handler(instruction, *bound) == nullptr) return nullptr;
  instruction.payload = std::bit_cast<std::uint64_t>(bound);
  return &execute_on_scalars;
}

}  // namespace

void register_rdna4_instructions(Registry& registry) {
  // Lanes that are off may be read.
  constexpr Record permutes{
      .action = Action::permute_row, .flow = Flow::move, .steering = 6, .keeps_destination = true};
  registry.add_own("v_permlane16_b32", &execute_permlane16<false>, permutes);
  registry.add_own("v_permlanex16_b32", &execute_permlane16<true>, permutes);
  registry.add_own("v_permlane16_var_b32", &execute_permlane16_var<false>, permutes);
  registry.add_own("v_permlanex16_var_b32", &execute_permlane16_var<true>, permutes);
  registry.add_own("v_permlane64_b32", &execute_permlane64, {.action = Action::permute_row, .flow = Flow::move});
  registry.add_own("v_swap_b16", &execute_swap_halves, {.action = Action::swap, .flow = Flow::move});
  registry.add_own("v_movrels_b32", &execute_movrel<true, false>, {.flow = Flow::copy, .relative = true});
  registry.add_own("v_movreld_b32", &execute_movrel<false, true>, {.flow = Flow::copy, .relative = true});
  registry.add_own("v_movrelsd_b32", &execute_movrel<true, true>, {.flow = Flow::copy, .relative = true});
  [&]<std::size_t... Function>(std::index_sequence<Function...>) {
    (registry.add_own_select("v_s_" + std::string(scalar_functions[Function]), &select_on_scalars<Function>,
                             {.kind = IssueKind::transcendental, .action = Action::scalar_function}),
     ...);
  }(std::make_index_sequence<scalar_functions.size()>());
}

}  // namespace wavejit::simgpu::vector
