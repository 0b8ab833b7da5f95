// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Where scalar loads point. Semantics: CDNA3 ISA, chapter 7.
#pragma once

#include <cstdint>

#include "simgpu/machine/wave/wave.h"

namespace wavejit::simgpu {

// Printed as "base, 0x10", "base, s3" or "base, s3 offset:0x10".
inline std::int64_t scalar_offset(const Wave& wave, const Instruction& instruction) {
  const Operand& operand = instruction.source[1];
  const std::int64_t first = operand.is_constant() ? static_cast<std::int64_t>(static_cast<std::int32_t>(operand.bits))
                                                   : static_cast<std::int64_t>(wave.scalar(operand));
  return first + instruction.offset;
}

// The two low bits of the sum are ignored: scalar memory reads whole dwords.
inline std::uint64_t scalar_address(const Wave& wave, const Instruction& instruction) {
  const std::uint64_t base = wave.scalar64(instruction.source[0]);
  return (base + static_cast<std::uint64_t>(scalar_offset(wave, instruction))) & ~std::uint64_t{3};
}

}  // namespace wavejit::simgpu
