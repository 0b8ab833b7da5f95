// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Lines of random programs before their operands are chosen.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace wavejit::simgpu::test {

enum class Only : std::uint8_t { anywhere, gfx950, lanes_32 };

// Operands by letter: v vector, V vector pair, Q four vectors, O eight, x vector or constant, s scalar, S scalar pair,
// f float with sign modifiers, h half of a vector register, m mask (VCC or scalar registers), c VCC, # constant. The
// destination comes first; what follows a blank or a comma stands as it is.
struct Shape {
  std::string_view mnemonic;
  std::string_view operands;
  Only only = Only::anywhere;
};

// Two instructions in one, whose operands depend on each other.
inline constexpr std::string_view pair_shape = "pair";

std::span<const Shape> rdna4_shapes();
std::span<const Shape> rdna4_number_shapes();

}  // namespace wavejit::simgpu::test
