// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/byte_float.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "wavejit/wavejit.h"

namespace wavejit::tools {
namespace {

struct ByteFormat {
  int fraction_bits;
  int bias;
  bool fnuz;            // 0x80 is its one NaN, and it has neither −0 nor infinities
  std::uint8_t finite;  // the largest one
};
constexpr ByteFormat format_of(ByteType type) {
  switch (type) {
    case ByteType::e4m3:
      return {.fraction_bits = 3, .bias = 7, .fnuz = false, .finite = 0x7E};
    case ByteType::e5m2:
      return {.fraction_bits = 2, .bias = 15, .fnuz = false, .finite = 0x7B};
    case ByteType::e4m3_fnuz:
      return {.fraction_bits = 3, .bias = 8, .fnuz = true, .finite = 0x7F};
    case ByteType::e5m2_fnuz:
    case ByteType::i8:
      break;
  }
  return {.fraction_bits = 2, .bias = 16, .fnuz = true, .finite = 0x7F};
}

constexpr std::uint8_t sign_bit = 0x80;
constexpr std::uint8_t infinity_of_e5m2 = 0x7C;

// By bits of the float, without the C library's functions: every number of a cache of 8 bits comes through here.
constexpr int fraction_bits_of_float = 23;
constexpr int bias_of_float = 127;

constexpr float byte_power_of_two(int exponent) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(exponent + bias_of_float) << fraction_bits_of_float);
}

// To nearest even, as the host rounds, of magnitudes up to 2^22.
float nearest(float magnitude) {
  constexpr float ulp_is_one = byte_power_of_two(fraction_bits_of_float);
  return (magnitude + ulp_is_one) - ulp_is_one;
}

}  // namespace

std::optional<ByteType> byte_type_of(std::int32_t dtype) {
  switch (dtype) {
    case WAVEJIT_E4M3:
      return ByteType::e4m3;
    case WAVEJIT_E5M2:
      return ByteType::e5m2;
    case WAVEJIT_E4M3_FNUZ:
      return ByteType::e4m3_fnuz;
    case WAVEJIT_E5M2_FNUZ:
      return ByteType::e5m2_fnuz;
    case WAVEJIT_INT8:
      return ByteType::i8;
    default:
      return std::nullopt;
  }
}

std::uint8_t nan_of(ByteType type) { return type == ByteType::i8 || format_of(type).fnuz ? 0x80 : 0x7F; }

float decode(ByteType type, std::uint8_t byte) {
  if (type == ByteType::i8) return static_cast<float>(static_cast<std::int8_t>(byte));
  const ByteFormat format = format_of(type);
  const int magnitude = byte & (sign_bit - 1);
  const float sign = (byte & sign_bit) != 0 ? -1.0F : 1.0F;
  if (format.fnuz && byte == sign_bit) return std::numeric_limits<float>::quiet_NaN();
  if (magnitude > format.finite)
    return type == ByteType::e5m2 && magnitude == infinity_of_e5m2 ? sign * std::numeric_limits<float>::infinity()
                                                                   : std::numeric_limits<float>::quiet_NaN();
  const int steps = 1 << format.fraction_bits;
  const int exponent = magnitude / steps;
  const int fraction = exponent == 0 ? magnitude : steps + magnitude % steps;
  return sign * static_cast<float>(fraction) *
         byte_power_of_two((exponent == 0 ? 1 : exponent) - format.bias - format.fraction_bits);
}

std::uint8_t encode(ByteType type, float value) {
  const ByteFormat format = format_of(type);
  if (std::isnan(value)) return nan_of(type);
  if (type == ByteType::i8)
    return static_cast<std::uint8_t>(static_cast<std::int8_t>(std::clamp(std::nearbyint(value), -128.0F, 127.0F)));
  const std::uint8_t sign = std::signbit(value) ? sign_bit : 0;
  if (std::isinf(value) && type == ByteType::e5m2) return sign | infinity_of_e5m2;
  const float magnitude = std::fabs(value);
  const auto field = static_cast<int>(std::bit_cast<std::uint32_t>(magnitude) >> fraction_bits_of_float);
  const int exponent = std::max(field - bias_of_float, 1 - format.bias);
  // Scaling by a power of two is exact here. Infinity stays what it is.
  const float fraction = nearest(magnitude * byte_power_of_two(format.fraction_bits - exponent));
  const auto steps = static_cast<float>(1 << format.fraction_bits);
  // Carries into the exponent by itself.
  const float code = (static_cast<float>(exponent - 1 + format.bias) * steps) + fraction;
  const auto byte = code >= static_cast<float>(format.finite) ? format.finite : static_cast<std::uint8_t>(code);
  if (byte == 0 && format.fnuz) return 0;
  return sign | byte;
}

}  // namespace wavejit::tools
