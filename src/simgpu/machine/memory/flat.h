// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Address computation of FLAT, GLOBAL and SCRATCH instructions.
#pragma once

#include "simgpu/machine/memory/access.h"

namespace wavejit::simgpu {

enum class FlatSpace : std::uint8_t { flat, global, scratch };

// Where lane addresses come from: `address` and `base` are the printed vector and scalar address operands.
template <FlatSpace space>
class FlatAddress {
 public:
  FlatAddress(const Wave& wave, const Instruction& instruction, const Operand& address, const Operand& base)
      : low_(address.is_vector() ? wave.vgpr[address.index] : nullptr),
        high_(address.is_vector() && address.dwords == 2 ? wave.vgpr[address.index + 1] : nullptr),
        base_(0) {
    if (base.is_present()) {
      base_ = space == FlatSpace::scratch ? wave.scalar(base) : wave.scalar64(base);
    }
    base_ += static_cast<std::uint64_t>(static_cast<std::int64_t>(instruction.offset));
  }

  std::uint64_t at(unsigned lane) const {
    std::uint64_t address = base_;
    if (low_ != nullptr) address += low_[lane];
    if (high_ != nullptr) address += std::uint64_t{high_[lane]} << 32;
    return address;
  }

  std::uint8_t* resolve_lane(Wave& wave, const Instruction& instruction, unsigned lane, std::uint32_t bytes,
                             bool write) const {
    const std::uint64_t address = at(lane);
    if constexpr (space == FlatSpace::scratch) {
      return resolve_scratch(wave, instruction, static_cast<std::uint32_t>(address), bytes, static_cast<int>(lane));
    } else if constexpr (space == FlatSpace::flat) {
      return resolve_flat(wave, instruction, address, bytes, write, static_cast<int>(lane));
    } else {
      return resolve(wave, instruction, address, bytes, write, static_cast<int>(lane));
    }
  }

 private:
  const std::uint32_t* low_;
  const std::uint32_t* high_;
  std::uint64_t base_;
};

}  // namespace wavejit::simgpu
