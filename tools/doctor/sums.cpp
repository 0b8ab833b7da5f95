// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/doctor/sums.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

namespace wavejit::tools::doctor {
namespace {

constexpr int zero_exponent = -126;

Factor factor_of(std::uint16_t bits, unsigned fraction_bits, int bias) {
  const auto fraction = static_cast<int>(bits & ((1U << fraction_bits) - 1));
  const auto exponent_field = static_cast<int>((bits & 0x7fffU) >> fraction_bits);
  const int exponent = exponent_field == 0 ? 1 - bias : exponent_field - bias;
  const int significand = fraction + (exponent_field == 0 ? 0 : 1 << fraction_bits);
  const double value = std::ldexp(significand, exponent - static_cast<int>(fraction_bits));
  return {.value = (bits & 0x8000U) != 0 ? -value : value, .exponent = significand == 0 ? zero_exponent : exponent};
}

double cut_toward_zero(double value, int unit) { return std::ldexp(std::trunc(std::ldexp(value, -unit)), unit); }
double cut_down(double value, int unit) { return std::ldexp(std::floor(std::ldexp(value, -unit)), unit); }

float chain(std::span<const Factor> a, std::span<const Factor> b, float c) {
  for (std::size_t k = 0; k < a.size(); ++k)
    c = std::fma(static_cast<float>(a[k].value), static_cast<float>(b[k].value), c);
  return c;
}

// Groups of products as MMA-Sim found them on CDNA3 (arXiv 2511.10909): products cut toward zero 24 places below the
// largest, added exactly; that sum and the running one cut down to 31 and 24 places, added, rounded once.
template <std::size_t group>
float cut_groups(std::span<const Factor> a, std::span<const Factor> b, float c) {
  for (std::size_t first = 0; first < a.size(); first += group) {
    const std::size_t end = std::min(first + group, a.size());
    int largest = 2 * zero_exponent;
    for (std::size_t k = first; k < end; ++k) largest = std::max(largest, a[k].exponent + b[k].exponent);
    double sum = 0;
    for (std::size_t k = first; k < end; ++k) sum += cut_toward_zero(a[k].value * b[k].value, largest - 24);
    const int of_c = c == 0 ? zero_exponent : std::max(std::ilogb(c), zero_exponent);
    const int most = std::max(largest, of_c);
    c = static_cast<float>(cut_down(sum, most - 31) + cut_down(c, most - 24));
  }
  return c;
}

// Products of a group and the running sum added without loss and rounded once. Of 128 bits: exponents farther apart
// than that do not stand in the patterns.
template <std::size_t group>
float exact_groups(std::span<const Factor> a, std::span<const Factor> b, float c) {
  for (std::size_t first = 0; first < a.size(); first += group) {
    const std::size_t end = std::min(first + group, a.size());
    constexpr int places = 24;  // of a significand, at most
    int lowest = c == 0 ? 0 : std::max(std::ilogb(c), zero_exponent) - places;
    for (std::size_t k = first; k < end; ++k)
      if (a[k].value * b[k].value != 0) lowest = std::min(lowest, a[k].exponent + b[k].exponent - places);
    using Wide = __int128;
    const auto units = [&](double value) { return static_cast<Wide>(std::ldexp(value, -lowest)); };
    Wide sum = units(c);
    for (std::size_t k = first; k < end; ++k) sum += units(a[k].value * b[k].value);
    // To 40 places with a sticky one, which a double holds and float32 rounds once.
    const bool negative = sum < 0;
    Wide size = negative ? -sum : sum;
    int unit = lowest;
    constexpr int kept = 40;
    while ((size >> kept) != 0) {
      size = (size >> 1) | (size & 1);
      ++unit;
    }
    const auto rounded = static_cast<float>(std::ldexp(static_cast<double>(size), unit));
    c = negative ? -rounded : rounded;
  }
  return c;
}

constexpr std::array<SumModel, 8> models = {{
    {"products one after the other, each a fused multiply-add (the simulated GPU's sequential)", chain},
    {"groups of 8, cut as CDNA3 does (the simulated GPU's cdna3)", cut_groups<8>},
    {"groups of 16, cut as CDNA3 does", cut_groups<16>},
    {"groups of 4, cut as CDNA3 does", cut_groups<4>},
    {"groups of 8, each added exactly and rounded once", exact_groups<8>},
    {"groups of 16, each added exactly and rounded once", exact_groups<16>},
    {"groups of 4, each added exactly and rounded once", exact_groups<4>},
    {"all products added exactly and rounded once", exact_groups<64>},
}};

}  // namespace

Factor factor_of_f16(std::uint16_t bits) { return factor_of(bits, 10, 15); }
Factor factor_of_bf16(std::uint16_t bits) { return factor_of(bits, 7, 127); }

std::span<const SumModel> sum_models() { return models; }

}  // namespace wavejit::tools::doctor
