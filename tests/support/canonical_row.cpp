// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/canonical_row.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace wavejit::tests {
namespace {

constexpr float minus_infinity = -std::numeric_limits<float>::infinity();
constexpr std::size_t tile = 64;

// One chunk, begun anew.
CanonicalRow part_of(std::span<const float> scores, float c, float threshold) {
  float m = minus_infinity;
  // By bits 4, 3 and 2 of the key.
  std::array<std::array<std::array<float, 2>, 2>, 2> l{};
  for (std::size_t first = 0; first < scores.size(); first += tile) {
    std::array<float, tile> s;
    s.fill(minus_infinity);
    std::ranges::copy(scores.subspan(first, std::min(tile, scores.size() - first)), s.begin());
    const float raised = std::max(m, *std::ranges::max_element(s));
    if ((raised - m) * c > threshold) {
      const float factor = std::exp2((m - raised) * c);
      for (auto& by_3 : l)
        for (auto& by_2 : by_3)
          for (float& sum : by_2) sum *= factor;
      m = raised;
    }
    const float shift = std::min(-(m * c), std::numeric_limits<float>::max());
    const auto p = [&](std::size_t key) { return std::exp2(std::fma(s[key], c, shift)); };
    for (std::size_t b4 = 0; b4 < 2; ++b4) {
      for (std::size_t b3 = 0; b3 < 2; ++b3) {
        for (std::size_t b2 = 0; b2 < 2; ++b2) {
          const std::size_t key = (16 * b4) + (8 * b3) + (4 * b2);
          const auto of_bit_5 = [&](std::size_t low) { return p(key + low) + p(key + low + 32); };
          const float even = of_bit_5(0) + of_bit_5(2);
          const float odd = of_bit_5(1) + of_bit_5(3);
          l[b4][b3][b2] += even + odd;
        }
      }
    }
  }
  const auto of_bit_4 = [&](std::size_t b3, std::size_t b2) { return l[0][b3][b2] + l[1][b3][b2]; };
  const auto of_bit_3 = [&](std::size_t b2) { return of_bit_4(0, b2) + of_bit_4(1, b2); };
  return {.maximum = m, .sum = of_bit_3(0) + of_bit_3(1)};
}

}  // namespace

CanonicalRow canonical_row(std::span<const float> scores, float scale_log2e, float threshold, std::size_t chunk) {
  CanonicalRow row = {.maximum = minus_infinity, .sum = 0};
  for (std::size_t first = 0; first < scores.size(); first += chunk) {
    const CanonicalRow part =
        part_of(scores.subspan(first, std::min(chunk, scores.size() - first)), scale_log2e, threshold);
    const float m = std::max(row.maximum, part.maximum);
    const auto weight = [&](float of) { return of == m ? 1.0F : std::exp2((of - m) * scale_log2e); };
    row.sum = std::fma(row.sum, weight(row.maximum), part.sum * weight(part.maximum));
    row.maximum = m;
  }
  return row;
}

}  // namespace wavejit::tests
