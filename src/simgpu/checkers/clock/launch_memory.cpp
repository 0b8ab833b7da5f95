// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/checkers/clock/launch_memory.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <ranges>
#include <set>
#include <utility>

#include "simgpu/checkers/facts/kind.h"

namespace wavejit::simgpu::clock {
namespace {

// Atomics that return something are loads by their kind; those of LDS are neither.
bool writes(const Instruction& instruction) {
  const Kind kind = kind_of(instruction);
  return kind == Kind::store || (kind == Kind::load && instruction.record->atomic);
}

std::vector<LineRange> runs_of(std::span<const std::uint64_t> lines, std::uint64_t reach) {
  std::vector<LineRange> runs;
  for (const std::uint64_t line : lines) {
    if (!runs.empty() && line - runs.back().end <= reach) {
      runs.back().end = line + 1;
    } else {
      runs.push_back({.first = line, .end = line + 1});
    }
  }
  constexpr std::size_t most = 64;  // as of stores that scatter: nobody asks so exactly
  return runs.size() <= most ? runs : runs_of(lines, std::max<std::uint64_t>(2 * reach, 1));
}

LineRange with_beside(const WrittenRange& written, const Allocation& holder, std::uint64_t line_bytes) {
  const auto& [first, end] = written.lines;
  return {.first = std::max(first - std::min(first, written.beside), holder.base / line_bytes),
          .end = std::min(end + written.beside, (holder.end() + line_bytes - 1) / line_bytes)};
}

std::vector<LineRange> sorted_and_apart(std::vector<LineRange> ranges) {
  std::ranges::sort(ranges, {}, &LineRange::first);
  std::vector<LineRange> apart;
  for (const LineRange& each : ranges) {
    if (!apart.empty() && each.first <= apart.back().end) {
      apart.back().end = std::max(apart.back().end, each.end);
    } else {
      apart.push_back(each);
    }
  }
  return apart;
}

}  // namespace

std::map<std::uint64_t, LinesOfAllocation> by_allocation(std::span<const std::uint64_t> lines, std::uint64_t line_bytes,
                                                         const FindAllocation& find) {
  std::map<std::uint64_t, LinesOfAllocation> by_base;
  for (const std::uint64_t line : lines) {
    const Allocation* const holder = find(line * line_bytes);
    if (holder == nullptr) continue;
    LinesOfAllocation& here = by_base[holder->base];
    here.holder = holder;
    here.lines.push_back(line);
  }
  return by_base;
}

Writes written_by(std::span<const WorkgroupTrace> traces, std::uint64_t workgroups, std::uint64_t line_bytes,
                  const FindAllocation& find) {
  std::set<std::uint64_t> stored;
  for (const WorkgroupTrace& trace : traces) {
    for (const WaveTrace& wave : trace.waves) {
      for (const Record& record : wave.records) {
        if (record.count == 0 || !writes(*record.instruction)) continue;
        const auto lines = std::span(wave.lines).subspan(record.first, record.count);
        stored.insert(lines.begin(), lines.end());
      }
    }
  }
  Writes written;
  const std::uint64_t untraced = workgroups - std::min<std::uint64_t>(traces.size(), workgroups);
  const std::vector<std::uint64_t> all(stored.begin(), stored.end());
  for (const auto& [base, touched] : by_allocation(all, line_bytes, find)) {
    const auto& [holder, lines] = touched;
    if (holder->serial == 0) continue;
    const std::uint64_t others = lines.size() * untraced / traces.size();
    const std::vector<LineRange> runs = runs_of(lines, others);
    // What others wrote that is not between traced lines lies on either side of them.
    std::uint64_t between = 0;
    for (const LineRange& run : runs) between += run.end - run.first;
    between -= lines.size();
    const std::uint64_t beside = (others - std::min(others, between)) / (2 * runs.size());
    for (const LineRange& run : runs) {
      written.push_back({.allocation = holder->serial, .device = holder->device, .lines = run, .beside = beside});
    }
  }
  return written;
}

std::vector<LineRange> lines_of(std::span<const Writes> launches) {
  std::vector<LineRange> ranges;
  for (const Writes& written : launches)
    std::ranges::transform(written, std::back_inserter(ranges), &WrittenRange::lines);
  return sorted_and_apart(std::move(ranges));
}

void WriteLog::add(Writes written) {
  constexpr std::size_t most_ranges = 1024;  // an older one is unlikely to be in a cache
  for (const WrittenRange& fresh : written) {
    std::erase_if(every_, [&](const WrittenRange& old) {
      return old.allocation == fresh.allocation && fresh.lines.first <= old.lines.first &&
             old.lines.end <= fresh.lines.end;
    });
    every_.push_front(fresh);
  }
  if (every_.size() > most_ranges) every_.resize(most_ranges);
  latest_ = std::move(written);
}

std::vector<LineRange> WriteLog::left_in_last_level(int device, const timing::MemoryRules& rules,
                                                    const FindAllocation& find) const {
  const auto line_bytes = static_cast<std::uint64_t>(rules.line.cycles());
  double room = rules.mall_bytes.value / rules.line.value;
  std::vector<LineRange> left;
  for (const WrittenRange& each : every_) {
    if (each.device != device) continue;
    const Allocation* const holder = find(each.lines.first * line_bytes);
    if (holder == nullptr || holder->serial != each.allocation) continue;
    const LineRange lines = with_beside(each, *holder, line_bytes);
    room -= static_cast<double>(lines.end - lines.first);
    if (room < 0) break;
    left.push_back(lines);
  }
  return sorted_and_apart(std::move(left));
}

std::unordered_set<std::uint64_t> left_in_l2(const LaunchMemory& memory, const PartsByLine& lines,
                                             const ReadersByLine& sharers, double workgroups_of_die, double l2_lines) {
  if (!memory.warm) return {};
  double touched = 0;
  for (const auto& [line, part] : lines) {
    const auto shared = sharers.find(line);
    touched += shared == sharers.end() ? part : part / shared->second;
  }
  if (touched * workgroups_of_die > l2_lines) return {};
  std::unordered_set<std::uint64_t> left;
  std::ranges::copy_if(lines | std::views::keys, std::inserter(left, left.end()),
                       [&](std::uint64_t line) { return !holds(memory.written, line); });
  return left;
}

}  // namespace wavejit::simgpu::clock
