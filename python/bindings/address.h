// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Device addresses and streams come from Python as numbers.
#pragma once

#include <cstdint>

namespace wavejit::python {

template <typename Pointer>
Pointer pointer_at(std::uintptr_t address) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): other libraries state them as numbers
  return reinterpret_cast<Pointer>(address);
}

}  // namespace wavejit::python
