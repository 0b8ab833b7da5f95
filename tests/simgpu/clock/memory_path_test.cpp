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

Neighbours busy_units(unsigned units, unsigned of_die) {
  Neighbours neighbours;
  neighbours.compute_units = units;
  neighbours.compute_units_of_die = of_die;
  neighbours.busy_units_of_die = of_die;
  return neighbours;
}

const timing::MemoryRules& rules() { return timing::find_timing(*targets::find_target("gfx942"))->memory; }

TEST(MemoryPath, LatencyIsThatOfTheLevelThatHasTheLine) {
  const Neighbours alone;
  MemoryPath path(rules(), alone);
  const std::array<std::uint64_t, 1> line = {77};
  const double memory = path.load(0, line, 0);
  EXPECT_NEAR(memory, 878, 10);  // MT4G, MI300X
  EXPECT_NEAR(path.load(10000, line, 0) - 10000, 97, 10);
  EXPECT_EQ(path.counts().memory, 1U);
  EXPECT_EQ(path.counts().l1_hits, 1U);
  // Out of L1, but in L2.
  for (std::uint64_t each = 1000; each < 1000 + (3 * 256); ++each) path.load(20000, std::array{each}, 0);
  EXPECT_NEAR(path.load(30000, line, 0) - 30000, 266, 10);
  EXPECT_EQ(path.counts().l2_hits, 1U);
  // Out of L2, but in the last level cache.
  for (std::uint64_t each = 1000; each < 1000 + (3 * 32768); ++each) path.load(30000, std::array{each}, 0);
  const double later = 10'000'000;
  EXPECT_NEAR(path.load(later, line, 0) - later, 650, 10);
}

// A gather of nearly as many lines as L1 has: with 64 ways a set takes what chance sends it, with 16 it does not.
TEST(MemoryPath, L1OfFewSetsKeepsWhatIsScattered) {
  constexpr std::uint64_t scatter = 2'654'435'761;
  constexpr std::uint64_t lines = 200;  // of 256
  const Neighbours alone;
  MemoryPath path(rules(), alone);
  for (int round = 0; round < 2; ++round)
    for (std::uint64_t i = 1; i <= lines; ++i) path.load(round * 1e6, std::array{i * scatter % 1'000'003}, 0);
  EXPECT_EQ(path.counts().l1_hits, lines);
}

// Workgroups that replay one trace stand for others with lines of their own: none reads for another.
TEST(MemoryPath, WorkgroupsThatReplayATraceReadTheirOwnLines) {
  const auto counts_of = [](const LineReaders& readers) {
    Neighbours neighbours = busy_units(304, 38);
    neighbours.sharers[2] = readers;
    MemoryPath path(rules(), neighbours);
    for (std::uint64_t instance = 0; instance < 16; ++instance) {
      path.load(0, std::array<std::uint64_t, 1>{1}, instance);
      path.load(0, std::array<std::uint64_t, 1>{2}, instance);
    }
    EXPECT_EQ(path.counts().memory + path.counts().l2_hits, 32U);
    return path.counts().memory;
  };
  EXPECT_EQ(counts_of({.of_die = 8}), 16U + 2) << "each has a line like it, which seven others of the die read";
  EXPECT_EQ(counts_of({.of_die = 16, .of_unit = 16, .one_for_copies = true}), 16U + 1) << "nobody else reads it";
  EXPECT_EQ(counts_of({.of_die = 608, .of_unit = 16, .one_for_copies = true}), 16U) << "one of 38 units fetches it";
}

// Rows of 4 KB, 32 bytes of each: a stride of a power of two goes round the sets of L1 as all do.
TEST(MemoryPath, StridesOfPowersOfTwoUseAllOfACache) {
  const Neighbours neighbours;
  MemoryPath path(rules(), neighbours);
  for (int round = 0; round < 2; ++round) {
    for (std::uint64_t row = 0; row < 192; ++row) path.load(0, std::array{row * 32}, 0);
  }
  EXPECT_GT(path.counts().l1_hits, 96U);
}

TEST(MemoryPath, ScalarLoadsHaveACacheOfTheirOwn) {
  const Neighbours neighbours;
  MemoryPath path(rules(), neighbours);
  const std::array<std::uint64_t, 1> line = {77};
  EXPECT_NEAR(path.scalar_load(0, line, 0), 878, 10);
  EXPECT_NEAR(path.scalar_load(10000, line, 0) - 10000, 16, 1);
  // The 16 KiB are 128 lines; what left them is in L2.
  for (std::uint64_t each = 1000; each < 1000 + (3 * 128); ++each) path.scalar_load(20000, std::array{each}, 0);
  EXPECT_NEAR(path.scalar_load(30000, line, 0) - 30000, 266, 10);
  // Arguments, which no line stands for.
  EXPECT_NEAR(path.scalar_load(40000, {}, 0) - 40000, 16, 1);
}

TEST(MemoryPath, ADieWritesBackForOneWorkgroupAfterTheOther) {
  for (const unsigned units : {1U, 8U}) {
    const Neighbours neighbours = busy_units(8 * units, units);
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
  EXPECT_NEAR(path.load(10000, line, 0) - 10000, 97, 10);
  EXPECT_EQ(path.acquire(20000), 20242);
  EXPECT_NEAR(path.load(30000, line, 0) - 30000, 650, 10);
  // Loads of agent scope never look into caches.
  EXPECT_NEAR(path.coherent_load(40000, line) - 40000, 650, 10);
  EXPECT_NEAR(path.coherent_store(50000, line) - 50000, 650, 10);
}

TEST(MemoryPath, RatesAreSharedWithTheOtherComputeUnits) {
  const auto last = [](unsigned units, unsigned of_die) {
    const Neighbours neighbours = busy_units(units, of_die);
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
  Neighbours neighbours = busy_units(304, 38);
  for (std::uint64_t line = 0; line < 800; ++line) neighbours.sharers[line] = {.of_die = 8};
  MemoryPath path(rules(), neighbours);
  for (std::uint64_t line = 0; line < 800; ++line) path.load(0, std::array{line}, 0);
  EXPECT_EQ(path.counts().memory, 100U);
  EXPECT_EQ(path.counts().l2_hits, 700U);
}

// A line that is on its way is waited for, in whichever cache it is missed first.
TEST(MemoryPath, WhoAsksForALineOnItsWayWaitsForIt) {
  const Neighbours alone;
  MemoryPath path(rules(), alone);
  const std::array<std::uint64_t, 1> line = {77};
  const double first = path.load(0, line, 0);
  EXPECT_NEAR(path.load(100, line, 0), first, 1);
  const std::array<std::uint64_t, 1> scalar = {78};
  const double first_scalar = path.scalar_load(0, scalar, 0);
  EXPECT_NEAR(path.scalar_load(100, scalar, 0), first_scalar, 1);
  EXPECT_NEAR(path.load(200, scalar, 0), first_scalar, 1);
}

// Caches that are invalidated forget a line that is on its way: it comes no earlier than it would have.
TEST(MemoryPath, WhatIsInvalidatedOnItsWayComesNoEarlier) {
  const Neighbours alone;
  MemoryPath path(rules(), alone);
  const std::array<std::uint64_t, 1> line = {77};
  const double first = path.load(0, line, 0);
  path.acquire(1);
  EXPECT_NEAR(path.load(2, line, 0), first, 1);
}

// Workgroups that follow one chain abreast wait for each of its lines as long as one alone does.
TEST(MemoryPath, WhatAnotherAsksForTakesAsLong) {
  Neighbours neighbours;
  for (std::uint64_t line = 0; line < 64; ++line) neighbours.sharers[line] = {.of_die = 8};
  MemoryPath path(rules(), neighbours);
  for (std::uint64_t line = 0; line < 64; ++line) {
    const double begin = 10000.0 * static_cast<double>(line);
    EXPECT_NEAR(path.load(begin, std::array{line}, 0) - begin, 878, 10) << line;
  }
}

// Lines of its own have the workgroup's part of L2, what others read has all of it.
TEST(MemoryPath, WorkgroupsOfADieFillItsL2Together) {
  const auto hits_when_read_again = [](bool shared, double part) {
    Neighbours neighbours;
    neighbours.l2_part = part;
    constexpr std::uint64_t lines = 4096;  // more than L1, an eighth of L2
    for (std::uint64_t line = 0; shared && line < lines; ++line) neighbours.sharers[line] = {.of_die = 2};
    MemoryPath path(rules(), neighbours);
    for (std::uint64_t line = 0; line < lines; ++line) path.load(0, std::array{line}, 0);
    const std::uint64_t before = path.counts().l2_hits;
    for (std::uint64_t line = 0; line < lines; ++line) path.load(0, std::array{line}, 0);
    return path.counts().l2_hits - before;
  };
  EXPECT_GT(hits_when_read_again(false, 1.0 / 4), 4000U);
  EXPECT_LT(hits_when_read_again(false, 1.0 / 38), 100U);
  EXPECT_GT(hits_when_read_again(true, 1.0 / 38), 4000U);
}

TEST(MemoryPath, WhatOtherDiesReadTooComesFromMemoryOnce) {
  Neighbours neighbours = busy_units(304, 38);
  for (std::uint64_t line = 0; line < 800; ++line) neighbours.dies[line] = 8;
  MemoryPath path(rules(), neighbours);
  for (std::uint64_t line = 0; line < 800; ++line) path.load(0, std::array{line}, 0);
  EXPECT_EQ(path.counts().memory, 100U);
  EXPECT_EQ(path.counts().mall_hits, 700U);
}

TEST(MemoryPath, AWarmLastLevelCacheHasEverything) {
  Neighbours neighbours;
  neighbours.warm = true;
  neighbours.in_l2.insert(78);
  MemoryPath path(rules(), neighbours);
  neighbours.in_l2.insert(78);
  EXPECT_NEAR(path.load(0, std::array<std::uint64_t, 1>{77}, 0), 650, 10);
  EXPECT_NEAR(path.load(10000, std::array<std::uint64_t, 1>{78}, 0) - 10000, 266, 10);
  EXPECT_EQ(path.counts().memory, 0U);
}

// Reads from the last level cache and writes pass one link of a die.
TEST(MemoryPath, ReadsAndWritesShareTheLinkOfTheirDie) {
  const auto cycles = [](bool writes) {
    Neighbours neighbours = busy_units(304, 38);
    neighbours.warm = true;
    MemoryPath path(rules(), neighbours);
    double done = 0;
    for (std::uint64_t line = 0; line < 4096; ++line) {
      done = path.load(0, std::array{line}, 0);
      if (writes) path.store(0, std::array{line + 100'000}, 0);
    }
    return std::max(done + path.write_back_cycles(done), path.busiest_cycles());
  };
  const double line_cycles = 128 * 38 / 345.0;
  EXPECT_NEAR(cycles(false), 4096 * line_cycles, 1000);
  EXPECT_NEAR(cycles(true), 2 * 4096 * line_cycles, 6000);
}

// Without that it has what launches before wrote.
TEST(MemoryPath, TheLastLevelCacheHasWhatWasWrittenBefore) {
  Neighbours neighbours;
  neighbours.in_last_level = {{.first = 10, .end = 12}, {.first = 77, .end = 78}};
  MemoryPath path(rules(), neighbours);
  EXPECT_NEAR(path.load(0, std::array<std::uint64_t, 1>{77}, 0), 650, 10);
  EXPECT_NEAR(path.load(10000, std::array<std::uint64_t, 1>{11}, 0) - 10000, 650, 10);
  for (const std::uint64_t line : {9U, 12U, 76U, 78U})
    EXPECT_NEAR(path.load(10000 * line, std::array{line}, 0) - static_cast<double>(10000 * line), 878, 10) << line;
}

// Stores of all compute units at once: what L2 has room for is written back later, and more waits for memory.
TEST(MemoryPath, StoresCostTheRateOfMemory) {
  const Neighbours neighbours = busy_units(304, 38);
  const double line_cycles = 128 * 304 / 1952.0;
  const double room = 4194304 / 128.0 / 38;  // lines, this compute unit's part
  MemoryPath path(rules(), neighbours);
  double done = 0;
  for (std::uint64_t line = 0; line < 4096; ++line) done = path.store(0, std::array{line}, 0);
  EXPECT_NEAR(done, (4096 - room) * line_cycles, 1000);
  EXPECT_NEAR(path.write_back_cycles(done), room * line_cycles, 1000);
  EXPECT_EQ(path.counts().written, 4096U);
  EXPECT_NEAR(path.busiest_cycles(), 4096 * line_cycles, 1);
  EXPECT_EQ(path.counts().of_l1, 0) << "a store goes by, and L1 bounds none";
  // A line that is written again before it has left counts once.
  path.store(done, std::array<std::uint64_t, 1>{4095}, 0);
  EXPECT_EQ(path.counts().written, 4096U);
  // Idle memory takes what is left.
  EXPECT_EQ(path.write_back_cycles(1e7), 0);
  EXPECT_LT(path.store(2e7, std::array<std::uint64_t, 1>{9999}, 0) - 2e7, 400);
}

// It reads and writes where all dies see it.
TEST(MemoryPath, AtomicsReadAndWriteMemory) {
  const Neighbours neighbours = busy_units(304, 38);
  MemoryPath path(rules(), neighbours);
  double done = 0;
  for (std::uint64_t each = 0; each < 8192; ++each) done = path.atomic(0, std::array{each % 16});
  const double line_cycles = 128 * 304 / 1952.0;
  EXPECT_GT(done, 8192 * 1.8 * line_cycles);
  // Memory is what they wait for, not each other's ways back from it.
  EXPECT_LT(done, 8192 * 2.1 * line_cycles);
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
