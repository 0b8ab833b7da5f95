// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Elements of 8 bits, for preparing arrays and for the reference: values by definition (OCP 8-bit Floating Point
// Specification 1.0; the FNUZ forms of CDNA3's ISA document; signed integers), and the nearest byte of a value.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

namespace wavejit::tools {

enum class ByteType : std::uint8_t { e4m3, e5m2, e4m3_fnuz, e5m2_fnuz, i8 };

// The type of a number of enum wavejit_dtype; nothing for other types.
std::optional<ByteType> byte_type_of(std::int32_t dtype);

float decode(ByteType type, std::uint8_t byte);
// The nearest code: of two that are as near the one with the even mantissa, beyond the largest finite value that one; NaN of NaN, of
// integers −128. An infinity is itself where the type has one.
std::uint8_t encode(ByteType type, float value);
// What slots hold that nobody may read; integers have no NaN, and it is −128.
std::uint8_t nan_of(ByteType type);

}  // namespace wavejit::tools
