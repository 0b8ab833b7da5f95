// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What stands behind an instruction's operands: "offset:16", "row_shr:1", "scope:SCOPE_DEV".
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "simgpu/machine/instruction/instruction.h"

namespace wavejit::simgpu {

// Decimal or hexadecimal, all of the text.
std::optional<std::int64_t> parse_integer(std::string_view text);

// False: not understood.
bool read_modifier(std::string_view token, Instruction& instruction);

}  // namespace wavejit::simgpu
