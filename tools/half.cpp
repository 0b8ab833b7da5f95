// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/half.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace wavejit::tools {

namespace {

struct Format {
  int fraction_bits;
  int smallest_exponent;  // of a normal number
  int largest_exponent;
  std::uint16_t infinity;  // also the mask of the exponent field
};

constexpr Format format_of(HalfType type) {
  return type == HalfType::fp16
             ? Format{.fraction_bits = 10, .smallest_exponent = -14, .largest_exponent = 15, .infinity = 0x7c00}
             : Format{.fraction_bits = 7, .smallest_exponent = -126, .largest_exponent = 127, .infinity = 0x7f80};
}

// The exponent of the unit in the last place at a finite magnitude; subnormals share the smallest.
int ulp_exponent(const Format& format, double magnitude) {
  const int exponent = magnitude == 0 ? format.smallest_exponent : std::ilogb(magnitude);
  return std::max(exponent, format.smallest_exponent) - format.fraction_bits;
}

}  // namespace

std::optional<HalfType> parse_half_type(std::string_view text) {
  if (text == "fp16") return HalfType::fp16;
  if (text == "bf16") return HalfType::bf16;
  return std::nullopt;
}

std::string_view to_text(HalfType type) { return type == HalfType::fp16 ? "fp16" : "bf16"; }

double rounded(HalfType type, double value) {
  if (!std::isfinite(value) || value == 0) return value;
  const Format format = format_of(type);
  const int exponent = ulp_exponent(format, std::fabs(value));
  // The default rounding mode of the host is to nearest even; scaling by a power of two is exact here.
  const double result = std::ldexp(std::nearbyint(std::ldexp(value, -exponent)), exponent);
  if (std::fabs(result) >= std::ldexp(1.0, format.largest_exponent + 1)) {
    return std::copysign(std::numeric_limits<double>::infinity(), value);
  }
  return result;
}

std::uint16_t encode(HalfType type, double value) {
  const Format format = format_of(type);
  const auto sign = static_cast<std::uint16_t>(std::signbit(value) ? 0x8000 : 0);
  if (std::isnan(value)) return static_cast<std::uint16_t>(sign | format.infinity | 1U << (format.fraction_bits - 1));
  const double magnitude = std::fabs(rounded(type, value));
  if (std::isinf(magnitude)) return sign | format.infinity;
  const int exponent = ulp_exponent(format, magnitude);
  // Units in the last place; the implicit bit, if any, adds one to the exponent field below.
  const auto units = static_cast<std::uint32_t>(std::ldexp(magnitude, -exponent));
  const int field = exponent + format.fraction_bits - format.smallest_exponent;
  return static_cast<std::uint16_t>(sign | ((static_cast<std::uint32_t>(field) << format.fraction_bits) + units));
}

float decode(HalfType type, std::uint16_t bits) {
  if (type == HalfType::bf16) return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
  const Format format = format_of(type);
  const int field = (bits & format.infinity) >> format.fraction_bits;
  const int fraction = bits & ((1 << format.fraction_bits) - 1);
  float magnitude = 0;
  if (field == 31) {
    magnitude = fraction != 0 ? std::numeric_limits<float>::quiet_NaN() : std::numeric_limits<float>::infinity();
  } else if (field == 0) {
    magnitude = std::ldexp(static_cast<float>(fraction), format.smallest_exponent - format.fraction_bits);
  } else {
    magnitude = std::ldexp(static_cast<float>(fraction + (1 << format.fraction_bits)),
                           field - 1 + format.smallest_exponent - format.fraction_bits);
  }
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

double half_ulp(HalfType type, double magnitude) {
  if (!std::isfinite(magnitude)) return 0;
  return std::ldexp(0.5, ulp_exponent(format_of(type), magnitude));
}

}  // namespace wavejit::tools
