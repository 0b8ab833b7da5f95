// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Two vector instructions in one (RDNA4's VOPD): both read before either writes.
//
//   v_dual_mov_b32 v0, v1 :: v_dual_mul_f32 v3, v4, v5
#pragma once

#include <bit>
#include <deque>
#include <expected>
#include <string>
#include <string_view>

#include "simgpu/machine/decode/registry.h"
#include "simgpu/machine/instruction/instruction.h"

namespace wavejit::simgpu {

struct Dual {
  Instruction first;
  Instruction second;
  bool crossed = false;  // the second reads what the first writes
};

bool is_dual(std::string_view printed);

// The two of an instruction whose record's action is Action::dual.
inline const Dual& dual_of(const Instruction& instruction) { return *std::bit_cast<const Dual*>(instruction.payload); }

// Fills `instruction` from the printed text; its parts are kept in `duals`.
std::expected<void, std::string> read_dual(std::string_view printed, std::string_view operands,
                                           const Registry& registry, std::deque<Dual>& duals, Instruction& instruction);

void register_dual(Registry& registry);

}  // namespace wavejit::simgpu
