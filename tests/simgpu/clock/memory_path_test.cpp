// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Caches, latencies and rates of vector memory, and a launch as a whole.
#include "simgpu/clock/memory_path.h"

#include <array>

#include "gtest/gtest.h"
#include "simgpu/clock/grid.h"
#include "targets/targets.h"
#include "timing/timing.h"

namespace wavejit::simgpu::clock {
namespace {

const timing::MemoryRules& rules() { return timing::find_timing(*targets::find_target("gfx942"))->memory; }

TEST(MemoryPath, LatencyIsThatOfTheLevelThatHasTheLine) {
  const Neighbours alone;
  MemoryPath path(rules(), alone);
  const std::array<std::uint64_t, 1> line = {77};
  const double memory = path.load(0, line, 0);
  EXPECT_NEAR(memory, 730, 10);  // pointer chase, MI300X
  EXPECT_NEAR(path.load(10000, line, 0) - 10000, 125, 10);
  // Another workgroup that replays the trace finds it in L2, not in L1.
  EXPECT_NEAR(path.load(20000, line, 1) - 20000, 175, 10);
  EXPECT_EQ(path.counts().memory, 1U);
  EXPECT_EQ(path.counts().l1_hits, 1U);
  EXPECT_EQ(path.counts().l2_hits, 1U);
  // Out of L2, but in the last level cache.
  for (std::uint64_t each = 1000; each < 1000 + (3 * 32768); ++each) path.load(30000, std::array{each}, 0);
  const double later = 10'000'000;
  EXPECT_NEAR(path.load(later, line, 0) - later, 545, 10);
}

TEST(MemoryPath, RatesAreSharedWithTheOtherComputeUnits) {
  const auto last = [](unsigned units, unsigned of_die) {
    const Neighbours neighbours{.compute_units = units, .compute_units_of_die = of_die, .sharers = {}};
    MemoryPath path(rules(), neighbours);
    double done = 0;
    for (std::uint64_t line = 0; line < 4096; ++line) done = path.load(0, std::array{line * 3}, 0);
    return done;
  };
  // 512 KiB through one compute unit's part of 1952 bytes a clock.
  EXPECT_NEAR(last(304, 38), 4096 * 128 * 304 / 1952.0, 1000);
  EXPECT_LT(last(1, 1) * 4, last(304, 38));
}

TEST(MemoryPath, WhatNeighboursReadTooIsFetchedOnceForAll) {
  Neighbours neighbours{.compute_units = 304, .compute_units_of_die = 38, .sharers = {}};
  for (std::uint64_t line = 0; line < 800; ++line) neighbours.sharers[line] = 8;
  MemoryPath path(rules(), neighbours);
  for (std::uint64_t line = 0; line < 800; ++line) path.load(0, std::array{line}, 0);
  EXPECT_EQ(path.counts().memory, 100U);
  EXPECT_EQ(path.counts().l2_hits, 700U);
}

TEST(Occupancy, IsLimitedByWhatRunsOutFirst) {
  const targets::Target& target = *targets::find_target("gfx950");
  EXPECT_EQ(occupancy_of(target, 128, 0, 4).workgroups, 4U);
  EXPECT_EQ(occupancy_of(target, 168, 0, 4).workgroups, 3U);
  EXPECT_EQ(occupancy_of(target, 169, 0, 4).workgroups, 2U);
  EXPECT_EQ(occupancy_of(target, 256, 0, 8).workgroups, 1U);
  EXPECT_EQ(occupancy_of(target, 257, 0, 4).workgroups, 1U);
  EXPECT_EQ(occupancy_of(target, 257, 0, 8).workgroups, 0U);
  EXPECT_EQ(occupancy_of(target, 32, 160 * 1024, 1).limit, "LDS");
  EXPECT_EQ(occupancy_of(target, 32, 40 * 1024, 4).workgroups, 4U);
  EXPECT_EQ(occupancy_of(target, 32, 0, 1).workgroups, 32U);
  EXPECT_EQ(occupancy_of(target, 32, 0, 2).limit, "waves");
}

TEST(Sample, IsSpreadAndComesInPairsOfOneDie) {
  const targets::Target& target = *targets::find_target("gfx950");
  EXPECT_EQ(workgroups_of(choose_sample(0, 1, 1000, 4, target)), (std::vector<std::uint64_t>{250, 258, 750, 758}));
  EXPECT_EQ(workgroups_of(choose_sample(0, 1, 1, 8, target)), std::vector<std::uint64_t>{0});
  EXPECT_EQ(workgroups_of(choose_sample(5, 10, 3, 2, target)), std::vector<std::uint64_t>{15});
  EXPECT_TRUE(choose_sample(0, 1, 0, 8, target).empty());
}

}  // namespace
}  // namespace wavejit::simgpu::clock
