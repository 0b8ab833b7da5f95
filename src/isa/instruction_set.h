// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which family of encodings and mnemonics a target's code is in. No cache key is over it.
#pragma once

#include <cstdint>
#include <string_view>

#include "targets/targets.h"

namespace wavejit::isa {

enum class InstructionSet : std::uint8_t {
  cdna,   // gfx9: waves of 64, MFMA, s_waitcnt
  rdna4,  // gfx12: waves of 32 or 64, WMMA, a counter for each kind of memory
};

// By LLVM's processor name.
InstructionSet instruction_set(std::string_view processor);
inline InstructionSet instruction_set(const targets::Target& target) { return instruction_set(target.id); }

}  // namespace wavejit::isa
