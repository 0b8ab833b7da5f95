// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What rows of the table are written with, and those that stand in files of their own.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "timing/timing.h"

namespace wavejit::timing {

// Lanes first … first + count − 1.
constexpr std::uint64_t lanes(int first, int count) {
  const std::uint64_t ones = count == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1;
  return ones << first;
}

// The lanes of a wave in order, wave / count at a time.
template <std::size_t wave, std::size_t count>
constexpr std::array<std::uint64_t, count> in_sequence() {
  std::array<std::uint64_t, count> phases{};
  for (std::size_t i = 0; i < count; ++i) phases[i] = lanes(static_cast<int>(i * (wave / count)), wave / count);
  return phases;
}
constexpr Figure measured(double value, std::string_view source) { return {value, Grade::measured, source}; }
constexpr Figure documented(double value, std::string_view source) { return {value, Grade::documented, source}; }
constexpr Figure derived(double value, std::string_view source) { return {value, Grade::derived, source}; }
constexpr Figure guessed(double value, std::string_view source) { return {value, Grade::guessed, source}; }
// For a target of which nobody has published the like: the source names the GPU.
constexpr Figure carried_over(const Figure& figure) { return {figure.value, Grade::carried, figure.source}; }

// gfx1201's.
extern const Timing rdna4;

}  // namespace wavejit::timing
