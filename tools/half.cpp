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
  int smallest_exponent;   // of a normal number
  std::uint16_t infinity;  // also the mask of the exponent field
};

constexpr Format format_of(HalfType type) {
  return type == HalfType::fp16 ? Format{.fraction_bits = 10, .smallest_exponent = -14, .infinity = 0x7c00}
                                : Format{.fraction_bits = 7, .smallest_exponent = -126, .infinity = 0x7f80};
}

// By bits of the double, without the C library's functions: every input of every problem comes through here.
constexpr int fraction_bits_of_double = 52;
constexpr int bias_of_double = 1023;

constexpr double half_power_of_two(int exponent) {
  return std::bit_cast<double>(static_cast<std::uint64_t>(exponent + bias_of_double) << fraction_bits_of_double);
}

// The exponent of the unit in the last place at a finite magnitude; subnormals share the smallest.
int ulp_exponent(const Format& format, double magnitude) {
  const auto field = static_cast<int>(std::bit_cast<std::uint64_t>(magnitude) >> fraction_bits_of_double);
  return std::max(field - bias_of_double, format.smallest_exponent) - format.fraction_bits;
}

// The code of a magnitude, without a sign. NaN has none.
std::uint16_t code_of(const Format& format, double magnitude) {
  if (magnitude < half_power_of_two(format.smallest_exponent)) {
    // Added to a number whose last place is theirs, subnormals are rounded as the host rounds: to nearest even.
    const double ulp_is_theirs =
        half_power_of_two(format.smallest_exponent - format.fraction_bits + fraction_bits_of_double);
    return static_cast<std::uint16_t>(std::bit_cast<std::uint64_t>(magnitude + ulp_is_theirs) -
                                      std::bit_cast<std::uint64_t>(ulp_is_theirs));
  }
  const int dropped = fraction_bits_of_double - format.fraction_bits;
  const auto bits = std::bit_cast<std::uint64_t>(magnitude);
  // A carry goes into the exponent by itself.
  const std::uint64_t kept = (bits + (std::uint64_t{1} << (dropped - 1)) - 1 + (bits >> dropped & 1)) >> dropped;
  const auto fields_below = static_cast<std::uint64_t>(bias_of_double + format.smallest_exponent - 1);
  return static_cast<std::uint16_t>(
      std::min<std::uint64_t>(kept - (fields_below << format.fraction_bits), format.infinity));
}

double magnitude_of(const Format& format, std::uint16_t code) {
  const int field = code >> format.fraction_bits;
  const int fraction = code & ((1 << format.fraction_bits) - 1);
  if (code > format.infinity) return std::numeric_limits<double>::quiet_NaN();
  if (code == format.infinity) return std::numeric_limits<double>::infinity();
  if (field == 0) return fraction * half_power_of_two(format.smallest_exponent - format.fraction_bits);
  return (fraction + (1 << format.fraction_bits)) *
         half_power_of_two(field - 1 + format.smallest_exponent - format.fraction_bits);
}

}  // namespace

std::optional<HalfType> parse_half_type(std::string_view text) {
  if (text == "fp16") return HalfType::fp16;
  if (text == "bf16") return HalfType::bf16;
  return std::nullopt;
}

std::string_view to_text(HalfType type) { return type == HalfType::fp16 ? "fp16" : "bf16"; }

double rounded(HalfType type, double value) {
  if (std::isnan(value)) return value;
  const Format format = format_of(type);
  return std::copysign(magnitude_of(format, code_of(format, std::fabs(value))), value);
}

std::uint16_t encode(HalfType type, double value) {
  const Format format = format_of(type);
  const auto sign = static_cast<std::uint16_t>(std::signbit(value) ? 0x8000 : 0);
  if (std::isnan(value)) return static_cast<std::uint16_t>(sign | format.infinity | 1U << (format.fraction_bits - 1));
  return static_cast<std::uint16_t>(sign | code_of(format, std::fabs(value)));
}

float decode(HalfType type, std::uint16_t bits) {
  if (type == HalfType::bf16) return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
  const auto magnitude = static_cast<float>(magnitude_of(format_of(type), static_cast<std::uint16_t>(bits & 0x7fff)));
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

double half_ulp(HalfType type, double magnitude) {
  if (!std::isfinite(magnitude)) return 0;
  return half_power_of_two(ulp_exponent(format_of(type), std::fabs(magnitude)) - 1);
}

}  // namespace wavejit::tools
