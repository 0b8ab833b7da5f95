// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a workgroup takes of a compute unit's LDS: what it asks for, in whole granules.
#pragma once

#include <cstdint>

#include "boards/board.h"

namespace wavejit::boards {

inline std::uint32_t lds_allocation(const Board& board, std::uint32_t bytes) {
  const auto granule = static_cast<std::uint32_t>(board.lds_granule);
  return (bytes + granule - 1) / granule * granule;
}

}  // namespace wavejit::boards
