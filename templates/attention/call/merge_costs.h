// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Whether the last workgroup to arrive merges the parts of its rows, or a second launch does: by cycles that a call
// takes beyond its walk, as the clock of the simulated GPU predicts them. Families fit the figures to their kernels.
// `./dev bench merge-costs` prints the figures. They rest on a guess of docs/timing-model.md, what parts cost that pass
// all caches, and on the wait between launches (timing/launches.h).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "templates/attention/call/flags.h"
#include "timing/launches.h"

namespace wavejit::attention {

// From the last part stored to the first one read, and the end of the kernel; each turn of a wave beyond its first; and
// how fast one workgroup merges what has come, and all of the device together. A rate of 0: it takes nothing.
struct OneLaunchCosts {
  std::uint32_t arrival = 0;
  std::uint32_t turn = 0;
  std::uint32_t bytes_a_cycle = 0;
  std::uint32_t all_bytes_a_cycle = 0;
};
// Beside the wait between the launches: the second one's start and end; each chunk of a row, which follow each other; and
// how fast the device merges.
struct TwoLaunchesCosts {
  std::uint32_t second_launch = 0;
  std::uint32_t chunk = 0;
  std::uint32_t second_bytes_a_cycle = 0;
};
struct MergeCosts {
  OneLaunchCosts one;
  TwoLaunchesCosts two;
};
template <typename Costs>
struct CostsOf {
  std::string_view target;
  Costs costs;
};

// Bytes that one workgroup loads, and those of all rows.
struct PartsToMerge {
  std::uint64_t chunks = 0;
  std::uint64_t bytes = 0;
  std::uint64_t all_bytes = 0;
  std::uint64_t turns = 1;
};

struct MergeCycles {
  std::uint64_t one = 0;
  std::uint64_t two = 0;
};
constexpr MergeCycles cycles_of(const MergeCosts& costs, const PartsToMerge& parts) {
  const auto at = [](std::uint64_t bytes, std::uint32_t rate) { return rate == 0 ? 0 : bytes / rate; };
  const auto& [one, two] = costs;
  return {.one = one.arrival + ((parts.turns - 1) * one.turn) + at(parts.bytes, one.bytes_a_cycle) +
                 at(parts.all_bytes, one.all_bytes_a_cycle),
          .two = static_cast<std::uint64_t>(timing::stream.dependent.cycles()) + two.second_launch +
                 (parts.chunks * two.chunk) + at(parts.all_bytes, two.second_bytes_a_cycle)};
}
// So much less decides for one launch: figures are fitted within some hundred cycles.
inline constexpr std::uint64_t least_gain = 1000;

// Null: none are fitted to the target's kernels.
template <typename Costs>
constexpr const Costs* costs_of(std::span<const CostsOf<Costs>> table, std::string_view target) {
  for (const CostsOf<Costs>& row : table)
    if (row.target == target) return &row.costs;
  return nullptr;
}

// As who calls says; else by cycles, and two launches where there are none: of workgroups with more rows than one of
// them merges faster than a second launch does.
constexpr bool in_one_launch(Launches said, const std::optional<MergeCosts>& costs, const PartsToMerge& parts) {
  if (said != Launches::planned || !costs) return said == Launches::one;
  const MergeCycles cycles = cycles_of(*costs, parts);
  return cycles.one + least_gain <= cycles.two;
}

// "merged in a second launch: 13780 cycles predicted beyond the walk, 16120 in one"
std::string describe_merge(Launches said, bool merged, const std::optional<MergeCosts>& costs,
                           const PartsToMerge& parts);

}  // namespace wavejit::attention
