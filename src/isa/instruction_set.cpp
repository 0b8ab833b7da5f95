// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "isa/instruction_set.h"

#include <algorithm>
#include <array>

namespace wavejit::isa {

InstructionSet instruction_set(std::string_view processor) {
  constexpr std::array<std::string_view, 2> rdna4 = {"gfx1200", "gfx1201"};
  return std::ranges::contains(rdna4, processor) ? InstructionSet::rdna4 : InstructionSet::cdna;
}

}  // namespace wavejit::isa
