// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How the tensors of a case lie in memory.
#pragma once

#include <cstdint>

namespace wavejit::tests {

enum class Layout : std::uint8_t { bshd, bhsd, padded };

// Tensors whose elements do not stand as kernels move them: rows side by side instead of dims, or dims side by side in
// rows that begin anywhere. With odd distances, behind an odd number of elements.
enum class Scattered : std::uint8_t { no, rows_inside, odd_rows };
struct ScatteredTensors {
  Scattered q = Scattered::no;
  Scattered k = Scattered::no;
  Scattered v = Scattered::no;
  Scattered o = Scattered::no;
};

}  // namespace wavejit::tests
