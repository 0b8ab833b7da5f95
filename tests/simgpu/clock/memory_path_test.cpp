// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Caches, latencies and rates of vector memory, and a launch as a whole.
#include "simgpu/checkers/clock/memory_path.h"

#include <array>

#include "boards/board.h"
#include "gtest/gtest.h"
#include "simgpu/checkers/clock/grid.h"
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

TEST(MemoryPath, ADieWritesBackForOneWorkgroupAfterTheOther) {
  for (const unsigned units : {1U, 8U}) {
    const Neighbours neighbours{.compute_units = 8 * units, .compute_units_of_die = units, .sharers = {}, .dies = {}};
    MemoryPath path(rules(), neighbours);
    EXPECT_EQ(path.release(100), 100 + (666 * units));
    // Another one of this compute unit waits for the first round.
    EXPECT_EQ(path.release(100), 100 + (2 * 666 * units));
  }
}

TEST(MemoryPath, WhatIsInvalidatedComesFromTheLastLevelCacheAgain) {
  const Neighbours alone;
  MemoryPath path(rules(), alone);
  const std::array<std::uint64_t, 1> line = {77};
  path.load(0, line, 0);
  EXPECT_NEAR(path.load(10000, line, 0) - 10000, 125, 10);
  EXPECT_EQ(path.acquire(20000), 20242);
  EXPECT_NEAR(path.load(30000, line, 0) - 30000, 545, 10);
  // Loads of agent scope never look into caches.
  EXPECT_NEAR(path.coherent_load(40000, line) - 40000, 545, 10);
  EXPECT_NEAR(path.coherent_store(50000, line) - 50000, 545, 10);
}

TEST(MemoryPath, RatesAreSharedWithTheOtherComputeUnits) {
  const auto last = [](unsigned units, unsigned of_die) {
    const Neighbours neighbours{.compute_units = units, .compute_units_of_die = of_die, .sharers = {}, .dies = {}};
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
  Neighbours neighbours{.compute_units = 304, .compute_units_of_die = 38, .sharers = {}, .dies = {}};
  for (std::uint64_t line = 0; line < 800; ++line) neighbours.sharers[line] = 8;
  MemoryPath path(rules(), neighbours);
  for (std::uint64_t line = 0; line < 800; ++line) path.load(0, std::array{line}, 0);
  EXPECT_EQ(path.counts().memory, 100U);
  EXPECT_EQ(path.counts().l2_hits, 700U);
}

TEST(MemoryPath, WhatOtherDiesReadTooComesFromMemoryOnce) {
  Neighbours neighbours{.compute_units = 304, .compute_units_of_die = 38, .sharers = {}, .dies = {}};
  for (std::uint64_t line = 0; line < 800; ++line) neighbours.dies[line] = 8;
  MemoryPath path(rules(), neighbours);
  for (std::uint64_t line = 0; line < 800; ++line) path.load(0, std::array{line}, 0);
  EXPECT_EQ(path.counts().memory, 100U);
  EXPECT_EQ(path.counts().mall_hits, 700U);
}

TEST(MemoryPath, AWarmLastLevelCacheHasEverything) {
  Neighbours neighbours;
  neighbours.warm = true;
  MemoryPath path(rules(), neighbours);
  EXPECT_NEAR(path.load(0, std::array<std::uint64_t, 1>{77}, 0), 545, 10);
  EXPECT_EQ(path.counts().memory, 0U);
}

// Stores of all compute units at once: what L2 has room for is written back later, and more waits for memory.
TEST(MemoryPath, StoresCostTheRateOfMemory) {
  const Neighbours neighbours{.compute_units = 304, .compute_units_of_die = 38, .sharers = {}, .dies = {}};
  const double line_cycles = 128 * 304 / 1952.0;
  const double room = 4194304 / 128.0 / 38;  // lines, this compute unit's part
  MemoryPath path(rules(), neighbours);
  double done = 0;
  for (std::uint64_t line = 0; line < 4096; ++line) done = path.store(0, std::array{line}, 0);
  EXPECT_NEAR(done, (4096 - room) * line_cycles, 1000);
  EXPECT_NEAR(path.write_back_cycles(done), room * line_cycles, 1000);
  EXPECT_EQ(path.counts().written, 4096U);
  EXPECT_NEAR(path.memory_cycles(), 4096 * line_cycles, 1);
  // A line that is written again before it has left counts once.
  path.store(done, std::array<std::uint64_t, 1>{4095}, 0);
  EXPECT_EQ(path.counts().written, 4096U);
  // Idle memory takes what is left.
  EXPECT_EQ(path.write_back_cycles(1e7), 0);
  EXPECT_LT(path.store(2e7, std::array<std::uint64_t, 1>{9999}, 0) - 2e7, 300);
}

// It reads and writes where all dies see it.
TEST(MemoryPath, AtomicsReadAndWriteMemory) {
  const Neighbours neighbours{.compute_units = 304, .compute_units_of_die = 38, .sharers = {}, .dies = {}};
  MemoryPath path(rules(), neighbours);
  double done = 0;
  for (std::uint64_t each = 0; each < 8192; ++each) done = path.atomic(0, std::array{each % 16});
  const double line_cycles = 128 * 304 / 1952.0;
  EXPECT_GT(done, 8192 * 1.8 * line_cycles);
}

TEST(Occupancy, IsLimitedByWhatRunsOutFirst) {
  const boards::Board& target = *boards::find_product("gfx950");
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

// By bytes alone there would be room for seven.
TEST(Occupancy, CountsLdsInTheGranulesThatItIsHandedOutIn) {
  EXPECT_EQ(occupancy_of(*boards::find_product("gfx950"), 32, 23000, 1).workgroups, 6U);  // 24,576 of 163,840
  EXPECT_EQ(occupancy_of(*boards::find_product("gfx942"), 32, 9300, 1).workgroups, 6U);   // 9,728 of 65,536
}

TEST(Sample, IsSpreadAndComesInPairsOfOneDie) {
  const boards::Board& target = *boards::find_product("gfx950");
  EXPECT_EQ(workgroups_of(choose_sample(0, 1, 1000, 4, target)), (std::vector<std::uint64_t>{250, 258, 750, 758}));
  EXPECT_EQ(workgroups_of(choose_sample(0, 1, 1, 8, target)), std::vector<std::uint64_t>{0});
  EXPECT_EQ(workgroups_of(choose_sample(5, 10, 3, 2, target)), std::vector<std::uint64_t>{15});
  EXPECT_TRUE(choose_sample(0, 1, 0, 8, target).empty());
}

}  // namespace
}  // namespace wavejit::simgpu::clock
