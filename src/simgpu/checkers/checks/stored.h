// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The bytes that a lane of a store hands to memory.
#pragma once

#include <cstdint>
#include <cstring>

#include "simgpu/checkers/facts/effects.h"
#include "simgpu/machine/wave/wave.h"

namespace wavejit::simgpu::checks {

struct Stored {
  std::uint8_t bytes[16];
  // `element`: which of the two addresses, for two-address LDS instructions.
  Stored(const Wave& wave, const Instruction& instruction, const Effects& effects, unsigned element, unsigned lane) {
    const Operand& operand = instruction.source[effects.data_operand + element];
    const unsigned half = instruction.record->half == RegisterHalf::high ? 2 : 0;
    std::uint32_t words[5] = {};
    for (unsigned i = 0; i * 4 < effects.bytes; ++i) {
      words[i] = operand.is_vector() ? wave.vgpr[operand.index + i][lane] : wave.scalar(operand);
    }
    std::memcpy(bytes, reinterpret_cast<const std::uint8_t*>(words) + half, sizeof(bytes));
  }
};

}  // namespace wavejit::simgpu::checks
