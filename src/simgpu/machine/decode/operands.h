// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Reads the printed operands and modifiers of one instruction ("v0, -|v1|, s[4:5] row_shr:1 row_mask:0xf") into an
// Instruction. The printed form is what LLVM keeps stable and documents; its internal operand order is neither.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>

#include "simgpu/machine/instruction/instruction.h"

namespace wavejit::simgpu {

// `instruction.record` must be set. `destinations` is how many leading operands are results. Strict: an operand or
// modifier that is not understood is an error naming it.
std::expected<void, std::string> read_operands(std::string_view text, unsigned destinations, Instruction& instruction);

}  // namespace wavejit::simgpu
