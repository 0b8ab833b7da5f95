// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The shape of a call whose code is made of fields of one struct (kernel/shape_bits.h).
//
//   using MergeShape = families::ShapeOf<AskedWords, families::AskedBits<AskedWords>, family>;
#pragma once

#include <cstdint>

#include "families/call/family.h"
#include "families/kernel/shape_bits.h"

namespace wavejit::families {

template <typename Words, typename Fields, const Family& (*family)()>
struct ShapeOf : Words {
  bool operator==(const ShapeOf&) const = default;
  Shape shape() const { return {.family = &family(), .code = code_of<Fields>(*this)}; }
  static ShapeOf of(std::uint64_t code) { return shape_of_code<Fields, ShapeOf>(code); }
};

}  // namespace wavejit::families
