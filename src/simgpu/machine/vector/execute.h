// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Between the wave and the kernels: fetching operands, applying modifiers, writing results.
#pragma once

#include <string_view>

#include "simgpu/machine/decode/registry.h"
#include "simgpu/machine/vector/operation.h"
#include "simgpu/machine/wave/wave.h"

namespace wavejit::simgpu::vector {

// An operation as decoded instructions refer to it (Instruction::payload).
struct Bound {
  const Operation* operation = nullptr;
  Kernel kernel = nullptr;
  std::uint32_t flags = 0;
  // Which MODE bits matter, and their values when nothing has to be done about them: denormals kept, nearest even.
  std::uint32_t mode_mask = 0;
  std::uint32_t mode_value = 0;
};

Bound bind(const Operation& operation, unsigned extra_flags, bool saturating);

// Rewrites the constants of `instruction` for the operand types, and chooses the handler.
Handler choose_handler(Instruction& instruction, const Bound& bound);

// modifiers.cpp: the ways in which a source differs from its register.
struct LaneBlock {
  alignas(64) std::uint32_t words[2 * lane_places];
};

// Fills `block` with a source as the instruction sees it. Returns the lanes that DPP leaves unwritten in `unwritten`.
void fetch_modified(const Wave& wave, const Instruction& instruction, const Operation& operation, unsigned index,
                    const Operand& operand, LaneBlock& block, std::uint64_t& unwritten);
// What DPP does to lanes: those whose source is one of `marked` and active, and those that are not written.
struct DppLanes {
  std::uint64_t carried = 0;
  std::uint64_t unwritten = 0;
};
DppLanes dpp_lanes(const Wave& wave, const Instruction& instruction, std::uint64_t marked);
// Denormal flush, output modifier and clamp on a result.
void finish_result(const Wave& wave, const Instruction& instruction, const Operation& operation, std::uint32_t* result);
// Merges a result into what the destination register keeps (SDWA, 16-bit halves).
void merge_partial(const Instruction& instruction, const Operation& operation, unsigned flags, const std::uint32_t* old,
                   std::uint32_t* result);

extern void (*const blend)(std::uint32_t* destination, const std::uint32_t* source, std::uint64_t mask,
                           unsigned dwords);

void register_lane_instructions(Registry& registry);
// RDNA4's own: permutes of 16 lanes, halves that change places, relative registers, transcendental functions of
// scalars.
void register_rdna4_instructions(Registry& registry);
// A lane kernel of RDNA4 by its name; null when there is none.
const Bound* find_rdna4(std::string_view mnemonic);
// An instruction of which a lane kernel works out one scalar: `operation`'s result of lane 0.
void execute_on_scalars(Wave& wave, const Instruction& instruction);

}  // namespace wavejit::simgpu::vector
