// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Bank conflicts of one LDS access, from the addresses of its lanes.
#pragma once

#include <array>
#include <cstdint>

#include "timing/timing.h"

namespace wavejit::timing {

struct BankUse {
  int phases = 0;
  int extra = 0;  // further turns because lanes of a phase want different rows of one bank; 0: no conflict
};

// Per lane the byte address where its `access.bytes` begin; lanes that are not `active` take no part. Lanes of one
// phase that want the same 4 bytes are served together.
BankUse bank_use(const LdsAccess& access, const std::array<std::uint32_t, 64>& addresses, std::uint64_t active);

}  // namespace wavejit::timing
