// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The last gate: a finished code object is read back, disassembled and either described or refused.
#pragma once

#include <expected>
#include <optional>
#include <span>

#include "codegen/barrier_order.h"
#include "codegen/compiled.h"
#include "targets/targets.h"

namespace wavejit::codegen {

// Refuses (Status::rejected, with the reason): another target's id or ELF machine, an encoding that the target does not
// have, spills, more private memory than the kernel declares, LDS accesses that crossed a barrier, control flow or
// memory that cannot be followed. Without `ir_order` (a code object from a file) the barrier check is left out.
std::expected<Facts, Failure> inspect(std::span<const unsigned char> code_object, const targets::Target& target,
                                      const std::optional<LdsFlowGraph>& ir_order, int declared_private_bytes = 0);

// One instruction a line: offset, bytes, text.
std::expected<std::string, Failure> disassembly_text(std::span<const unsigned char> code_object);

}  // namespace wavejit::codegen
