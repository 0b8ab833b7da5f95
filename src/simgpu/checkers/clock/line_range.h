// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Lines of memory that follow each other.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <span>

namespace wavejit::simgpu::clock {

struct LineRange {
  std::uint64_t first = 0;
  std::uint64_t end = 0;
  bool operator==(const LineRange&) const = default;
};

// `ranges` are sorted and apart from each other.
inline bool holds(std::span<const LineRange> ranges, std::uint64_t line) {
  const auto behind = std::ranges::upper_bound(ranges, line, {}, &LineRange::first);
  return behind != ranges.begin() && line < std::prev(behind)->end;
}

}  // namespace wavejit::simgpu::clock
