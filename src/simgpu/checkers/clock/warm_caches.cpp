// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/checkers/clock/warm_caches.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <ranges>

#include "simgpu/checkers/facts/kind.h"

namespace wavejit::simgpu::clock {
namespace {

bool holds(std::span<const LineRange> ranges, std::uint64_t line) {
  return std::ranges::any_of(ranges, [&](const LineRange& each) { return line >= each.first && line < each.end; });
}

}  // namespace

std::vector<LineRange> written_ranges(std::span<const WorkgroupTrace> traces, std::uint64_t line_bytes,
                                      const std::function<const Allocation*(std::uint64_t)>& find) {
  std::map<std::uint64_t, LineRange> ranges;  // by the start of the allocation
  const auto add = [&](std::uint64_t line) {
    const Allocation* const holder = find(line * line_bytes);
    if (holder == nullptr) return;
    LineRange& range = ranges.try_emplace(holder->base, LineRange{.first = line, .end = line + 1}).first->second;
    range = {.first = std::min(range.first, line), .end = std::max(range.end, line + 1)};
  };
  for (const WorkgroupTrace& trace : traces) {
    for (const WaveTrace& wave : trace.waves) {
      for (const Record& record : wave.records) {
        if (record.count == 0 || kind_of(*record.instruction) != Kind::store) continue;
        const auto lines = std::span(wave.lines).subspan(record.first, record.count);
        std::ranges::for_each(lines, add);
      }
    }
  }
  std::vector<LineRange> written;
  std::ranges::copy(std::views::values(ranges), std::back_inserter(written));
  return written;
}

std::unordered_set<std::uint64_t> left_in_l2(const WarmCaches& warm, const std::unordered_set<std::uint64_t>& lines,
                                             const std::unordered_map<std::uint64_t, unsigned>& sharers,
                                             double workgroups_of_die, double l2_lines) {
  if (!warm.last_level) return {};
  double touched = 0;
  for (const std::uint64_t line : lines) {
    const auto shared = sharers.find(line);
    touched += shared == sharers.end() ? 1.0 : 1.0 / shared->second;
  }
  if (touched * workgroups_of_die > l2_lines) return {};
  std::unordered_set<std::uint64_t> left;
  std::ranges::copy_if(lines, std::inserter(left, left.end()),
                       [&](std::uint64_t line) { return !holds(warm.written, line); });
  return left;
}

}  // namespace wavejit::simgpu::clock
