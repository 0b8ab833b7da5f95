// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How an instruction uses the machine: what decides its cost and which unit takes it.
#pragma once

#include <cstdint>
#include <string>

#include "simgpu/machine/instruction/instruction.h"
#include "timing/timing.h"

namespace wavejit::simgpu::clock {

using Kind = IssueKind;

// The record's, made exact by operands and modifiers.
Kind kind_of(const Instruction& instruction);
std::string_view to_text(Kind kind);

// Cycles of the vector issue port; 0 for what does not pass it.
int port_cycles(Kind kind, const Instruction& instruction, const timing::IssueCosts& costs);

// Name of an LDS access in the table of timing; empty for what is none.
std::string lds_access_name(const Instruction& instruction);

}  // namespace wavejit::simgpu::clock
