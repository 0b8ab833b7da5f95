// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The 16-bit types of the kernels, for preparing arrays and for the reference: conversions by definition (IEEE 754
// binary16; bfloat16 as the upper half of binary32), round to nearest even, through double so that nothing is rounded
// twice. They are ours because xtensor has none, nor has the C++ library of every supported compiler.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace wavejit::tools {

enum class HalfType : std::uint8_t { fp16, bf16 };

std::optional<HalfType> parse_half_type(std::string_view text);
std::string_view to_text(HalfType type);

std::uint16_t encode(HalfType type, double value);
// Exact.
float decode(HalfType type, std::uint16_t bits);
// The value of `type` that is nearest to `value`.
double rounded(HalfType type, double value);
// Half the distance between neighbours of `type` at this magnitude.
double half_ulp(HalfType type, double magnitude);

}  // namespace wavejit::tools
