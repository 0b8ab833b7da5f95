// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which workgroups speak for a launch, and what is made of their times.
#include "simgpu/checkers/clock/sample.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <vector>

#include "assembled.h"
#include "boards/board.h"
#include "gtest/gtest.h"
#include "simgpu/checkers/clock/launch_clock.h"
#include "simgpu/checkers/clock/survey.h"
#include "simgpu/process/process.h"

namespace wavejit::simgpu::clock {
namespace {

const boards::Board& gfx950() { return *boards::find_product("gfx950"); }

// 16 heads, 32 query blocks, 16 sequences: ids an eighth of the launch apart all have query block 0.
TEST(Sample, SeesEveryPartOfTheQueryBlocksInABatch) {
  const std::array<std::uint32_t, 3> grid = {16, 32, 16};
  std::set<std::uint64_t> quarters;
  for (const Seed& seed : choose_sample(grid, 16, gfx950())) quarters.insert(seed.workgroup / 16 % 32 / 8);
  EXPECT_EQ(quarters.size(), 4U);
}

TEST(Sample, SeesEveryPartOfAGridOfOneDimension) {
  std::set<std::uint64_t> quarters;
  const std::vector<std::uint64_t> chosen = workgroups_of(choose_sample({1024, 1, 1}, 16, gfx950()));
  for (const std::uint64_t id : chosen) quarters.insert(id / 256);
  EXPECT_EQ(quarters.size(), 4U);
  EXPECT_EQ(chosen.size(), 12U);
}

TEST(Sample, HoldsNoIdBeyondTheGridAndNoneTwice) {
  for (const std::array<std::uint32_t, 3>& grid :
       {std::array<std::uint32_t, 3>{1, 1, 1}, {3, 1, 1}, {1, 5, 2}, {7, 3, 2}}) {
    const std::uint64_t all = std::uint64_t{grid[0]} * grid[1] * grid[2];
    for (const std::uint64_t most : {1, 2, 7, 8, 1000}) {
      const std::vector<std::uint64_t> chosen = workgroups_of(choose_sample(grid, most, gfx950()));
      EXPECT_EQ(std::set<std::uint64_t>(chosen.begin(), chosen.end()).size(), chosen.size());
      ASSERT_FALSE(chosen.empty());
      EXPECT_LE(chosen.size(), std::max<std::uint64_t>(most, 2));
      EXPECT_LT(chosen.back(), all);
    }
  }
}

// 16 heads on eight dies: a die has two of them in turns, and what has the same keys is two of its turns away.
TEST(Sample, KnowsTheNextRowOfTheSameHead) {
  const std::array<std::uint32_t, 3> grid = {16, 4, 16};
  EXPECT_EQ(turns_of_row(grid, gfx950()), 2U);
  for (const Seed& seed : choose_sample(grid, 16, gfx950())) {
    ASSERT_TRUE(seed.row.has_value());
    EXPECT_EQ(*seed.row % 16, seed.workgroup % 16);
    EXPECT_EQ(*seed.row / 64, seed.workgroup / 64) << "another sequence has other keys";
    EXPECT_EQ(std::max(*seed.row, seed.workgroup) - std::min(*seed.row, seed.workgroup), 16U);
    ASSERT_TRUE(seed.next.has_value());
    EXPECT_EQ(*seed.next % 8, seed.workgroup % 8);
    EXPECT_EQ(*seed.next / 16, seed.workgroup / 16) << "a die has two heads of this row, which may be one group";
    ASSERT_TRUE(seed.across.has_value());
    EXPECT_EQ(*seed.across / 16, seed.workgroup / 16) << "of the same row";
    EXPECT_NE(*seed.across % 8, seed.workgroup % 8) << "on another die";
    EXPECT_EQ(*seed.across / 2, seed.workgroup / 2) << "in the same pair, as heads of a group are";
  }
  // Eight heads: the next of the die is of the same one, as long as there is one.
  for (const Seed& seed : choose_sample({8, 4, 16}, 16, gfx950())) {
    EXPECT_FALSE(seed.row.has_value());
    ASSERT_TRUE(seed.next.has_value());
    EXPECT_EQ(*seed.next / 32, seed.workgroup / 32);
    EXPECT_EQ(*seed.next % 8, seed.workgroup % 8);
  }
}

// Nine heads on eight dies: the next row's workgroup of a head is on another die, and all dies read each head.
TEST(Sample, KnowsTheNextRowOfTheSameHeadOnAnotherDie) {
  for (const Seed& seed : choose_sample({9, 8, 4}, 16, gfx950())) {
    ASSERT_TRUE(seed.across_rows.has_value());
    EXPECT_EQ(*seed.across_rows % 9, seed.workgroup % 9);
    EXPECT_EQ(*seed.across_rows / 72, seed.workgroup / 72) << "another sequence has other keys";
    EXPECT_NE(*seed.across_rows % 8, seed.workgroup % 8) << "on another die";
  }
  for (const std::array<std::uint32_t, 3>& on_one_die : {std::array<std::uint32_t, 3>{8, 8, 4}, {16, 8, 4}, {9, 1, 32}})
    for (const Seed& seed : choose_sample(on_one_die, 16, gfx950())) EXPECT_FALSE(seed.across_rows.has_value());
}

// A causal launch: block y takes 100 + 10 y.
TEST(Durations, FollowWorkThatGrowsAlongOneDimension) {
  const std::array<std::uint32_t, 3> grid = {4, 64, 2};
  const auto cycles = [](std::uint64_t id) { return 100 + (10 * (id / 4 % 64)); };
  std::vector<SampledTime> sample;
  for (const Seed& seed : choose_sample(grid, 16, gfx950())) sample.push_back({seed.workgroup, cycles(seed.workgroup)});
  const Durations durations(sample, grid);
  for (std::uint64_t id = 0; id < 512; ++id) EXPECT_NEAR(double(durations.of(id)), double(cycles(id)), 1) << id;
}

TEST(Durations, AreThoseOfTheNearestWhereNothingGrows) {
  const std::array<std::uint32_t, 3> grid = {100, 1, 1};
  const std::vector<SampledTime> sample = {{10, 500}, {50, 900}, {90, 500}};
  const Durations durations(sample, grid);
  EXPECT_EQ(durations.of(0), 500U);
  EXPECT_EQ(durations.of(45), 900U);
  EXPECT_EQ(durations.of(99), 500U);
}

// Counts what a survey asks for, and says what each workgroup would take then, 10 cycles an instruction.
class Surveyed {
 public:
  template <typename WorkOf>
  Surveyed(const std::array<std::uint32_t, 3>& grid, WorkOf work_of) : survey_(grid) {
    std::vector<SampledWork> work;
    const auto count = [&](const std::vector<std::uint64_t>& ids) {
      work.clear();
      for (const std::uint64_t id : ids) work.push_back({id, work_of(id)});
    };
    const std::vector<std::uint64_t> sample = workgroups_of(choose_sample(grid, 16, gfx950()));
    count(Survey::ends(grid, sample));
    const std::vector<SampledWork> ends = work;
    count(sample);
    needed_ = Survey::needed(work, ends, grid);
    if (!needed_) return;
    std::ranges::copy(ends, std::back_inserter(work));
    for (std::vector<std::uint64_t> ids = survey_.next(work); !ids.empty(); ids = survey_.next(work)) {
      EXPECT_TRUE(std::ranges::is_sorted(ids));
      counted_ += ids.size();
      count(ids);
    }
    found_nothing_ = survey_.found_nothing();
    seeds_ = survey_.seeds(gfx950());
    std::vector<SampledTime> times;
    for (const Seed& seed : seeds_) times.push_back({seed.workgroup, 10 * work_of(seed.workgroup)});
    durations_.emplace(times, survey_);
  }
  bool needed() const { return needed_; }
  bool found_nothing() const { return found_nothing_; }
  std::size_t counted() const { return counted_; }
  const std::vector<Seed>& seeds() const { return seeds_; }
  const DurationsByWork& durations() const { return *durations_; }

 private:
  Survey survey_;
  bool needed_ = false;
  bool found_nothing_ = false;
  std::size_t counted_ = 0;
  std::vector<Seed> seeds_;
  std::optional<DurationsByWork> durations_;
};

constexpr std::array<std::uint64_t, 16> ragged = {900, 100, 400,  1600, 200, 800,  1200, 300,
                                                  700, 150, 1000, 600,  50,  1400, 250,  500};

// Packed sequences: plane z has a length of its own, and a launch's first sample sees four of sixteen.
TEST(Survey, KnowsThePlanesWhereWorkDiffersWithoutARule) {
  const auto work_of = [](std::uint64_t id) { return 1000 + (10 * ragged[id / 128]); };
  const Surveyed surveyed({8, 16, 16}, work_of);
  ASSERT_TRUE(surveyed.needed());
  EXPECT_LT(surveyed.counted(), 128U) << "rows and heads change nothing";
  EXPECT_LE(surveyed.seeds().size(), 12U);
  for (std::uint64_t id = 0; id < 8 * 16 * 16; ++id)
    EXPECT_NEAR(double(surveyed.durations().of(id)), 10.0 * double(work_of(id)), 1) << id;
}

// Keys in runs, sixteen of them beside eight heads in x: a run beyond the end of its sequence ends at once, and the
// last one of each is cut off. No dimension knows it, only both.
TEST(Survey, KnowsRunsOfSequencesOfDifferentLengths) {
  const auto work_of = [](std::uint64_t id) {
    const std::uint64_t run = id % 128 / 8;
    const std::uint64_t length = ragged[id / 128];
    return 100 + (10 * std::min<std::uint64_t>(100, length > 100 * run ? length - (100 * run) : 0));
  };
  const Surveyed surveyed({128, 1, 16}, work_of);
  ASSERT_TRUE(surveyed.needed());
  EXPECT_LE(surveyed.counted(), 1024U);
  for (std::uint64_t id = 0; id < 128 * 16; ++id)
    EXPECT_NEAR(double(surveyed.durations().of(id)), 10.0 * double(work_of(id)), 1) << id;
}

// One long prefill beside decoding: who has rows beyond the first is one sequence of many.
TEST(Survey, FindsTheOneSequenceThatHasMoreRows) {
  const auto work_of = [](std::uint64_t id) {
    const std::uint64_t row = id / 16 % 8;
    return row == 0 || id / 128 == 5 ? 5000 + (100 * row) : 60U;
  };
  const Surveyed surveyed({16, 8, 64}, work_of);
  ASSERT_TRUE(surveyed.needed());
  for (std::uint64_t id = 0; id < 16 * 8 * 64; ++id)
    EXPECT_NEAR(double(surveyed.durations().of(id)), 10.0 * double(work_of(id)), 10) << id;
  for (const Seed& seed : surveyed.seeds())
    for (const std::optional<std::uint64_t>& neighbour : {seed.next, seed.row})
      if (neighbour)
        EXPECT_NEAR(double(work_of(*neighbour)), double(work_of(seed.workgroup)), 0.1 * work_of(*neighbour));
}

// A table that has room for 131,072 keys and sequences of 8,192: 64 heads by 64 runs of two chunks in x, of which four
// runs have keys, the first sixteenth of x. All the middles of strata lie beyond them.
TEST(Survey, FindsTheFewRunsThatHaveKeysAtTheBeginningOfADimension) {
  const auto work_of = [](std::uint64_t id) { return id % 4096 < 256 ? 9000U : 90U; };
  const Surveyed surveyed({4096, 1, 4}, work_of);
  ASSERT_TRUE(surveyed.needed());
  EXPECT_LE(surveyed.counted(), 1024U);
  for (std::uint64_t id = 0; id < 4096 * 4; ++id) EXPECT_EQ(surveyed.durations().of(id), 10 * work_of(id)) << id;
}

// Each sequence ends elsewhere: neighbours that differ are told apart in each of them.
TEST(Survey, FindsWhereEachOfAFewSequencesEnds) {
  constexpr std::array<std::uint64_t, 4> runs = {3, 40, 1, 17};
  const auto work_of = [&](std::uint64_t id) { return id % 4096 < 64 * runs[id / 4096] ? 9000U : 90U; };
  const Surveyed surveyed({4096, 1, 4}, work_of);
  ASSERT_TRUE(surveyed.needed());
  for (std::uint64_t id = 0; id < 4096 * 4; ++id) EXPECT_EQ(surveyed.durations().of(id), 10 * work_of(id)) << id;
}

// Nothing of the sample lies at the last place, where one sequence is long.
TEST(Survey, SeesWhatOnlyTheLastWorkgroupHas) {
  EXPECT_TRUE(Surveyed({8, 1, 64}, [](std::uint64_t id) { return id / 8 == 63 ? 90000U : 3000U; }).needed());
  EXPECT_TRUE(Surveyed({8, 1, 64}, [](std::uint64_t id) { return id / 8 == 0 ? 90000U : 3000U; }).needed());
}

// Short ones, of which each is like the others: asked again, and left as they are.
TEST(Survey, FindsNothingAmongShortWorkgroupsThatAreAlike) {
  EXPECT_TRUE(Surveyed({8, 16, 16}, [](std::uint64_t) { return 300U; }).found_nothing());
  EXPECT_FALSE(Surveyed({8, 16, 16}, [](std::uint64_t id) { return id / 8 % 16 == 0 ? 400U : 300U; }).found_nothing());
}

TEST(Survey, IsNotNeededWhereADimensionExplainsTheWork) {
  EXPECT_FALSE(Surveyed({8, 16, 16}, [](std::uint64_t id) { return 10000 + (100 * (id / 8 % 16)); }).needed());
  EXPECT_FALSE(Surveyed({8, 16, 16}, [](std::uint64_t) { return 10000U; }).needed());
}

// The same through a launch: a workgroup's rounds are what a table says of its plane.
TEST(SampledOnly, RaggedLaunchesAreTimedByTheirDistinctWork) {
  const testing::Assembled kernel(
      {.body = "s_load_dwordx2 s[6:7], s[0:1], 0x0\ns_lshl_b32 s8, s4, 2\ns_waitcnt lgkmcnt(0)\n"
               "s_load_dword s8, s[6:7], s8\ns_waitcnt lgkmcnt(0)\n1:\nv_exp_f32 v2, v1\n"
               "s_sub_u32 s8, s8, 1\ns_cmp_lg_u32 s8, 0\ns_cbranch_scc1 1b"});
  testing::Buffer<std::uint32_t> rounds(16);
  const std::array<std::uint32_t, 16> table = {9, 100, 40, 160, 20, 80, 120, 30, 70, 15, 1000, 60, 5, 140, 25, 50};
  for (std::size_t plane = 0; plane < table.size(); ++plane) rounds[plane] = table[plane];
  const Settings before = Process::instance().settings();
  Settings settings = before;
  settings.sampled_only = true;
  Process::instance().set_settings(settings);
  ClockLog::instance().set_sample(16);
  const std::uint64_t ran = Process::instance().counters().workgroups.load();
  EXPECT_EQ(kernel.run({rounds.address()}, {4, 8, 16}).text, "");
  const std::uint64_t count = Process::instance().counters().workgroups.load() - ran;
  const std::string timed = ClockLog::instance().take(std::numeric_limits<std::size_t>::max());
  Process::instance().set_settings(before);
  ClockLog::instance().set_sample(0);
  EXPECT_GT(count, 24U);
  EXPECT_LT(count, 200U);
  // The longest sequence decides: 1000 rounds of 36 cycles.
  EXPECT_GT(nlohmann::json::parse(timed).at("cycles").get<double>(), 30000) << timed;
}

TEST(Durations, OfOneWorkgroupAreThoseOfAll) {
  const std::vector<SampledTime> sample = {{3, 700}};
  const Durations durations(sample, {8, 8, 8});
  EXPECT_EQ(durations.of(511), 700U);
}

// A kernel that plans for the next launch, workgroups of different work: all of them run, and each is timed.
TEST(SampledOnly, SmallLaunchesRunWholeAndAreTimedByTheirDistinctWork) {
  // Workgroup i goes round i times.
  const testing::Assembled kernel(
      "s_add_u32 s8, s2, 1\n1:\nv_exp_f32 v2, v1\nv_exp_f32 v3, v1\ns_sub_u32 s8, s8, 1\n"
      "s_cmp_lg_u32 s8, 0\ns_cbranch_scc1 1b");
  const Settings before = Process::instance().settings();
  Settings settings = before;
  settings.sampled_only = true;
  Process::instance().set_settings(settings);
  ClockLog::instance().set_sample(16);
  const auto ran_of = [&](std::uint32_t workgroups) {
    const std::uint64_t ran = Process::instance().counters().workgroups.load();
    EXPECT_EQ(kernel.run({0}, {workgroups, 1, 1}).text, "");
    return Process::instance().counters().workgroups.load() - ran;
  };
  EXPECT_EQ(ran_of(9), 9U);
  const std::string timed = ClockLog::instance().take(std::numeric_limits<std::size_t>::max());
  EXPECT_EQ(ran_of(64), 64U);
  EXPECT_LE(ran_of(65), 65U);
  Process::instance().set_settings(before);
  ClockLog::instance().take(std::numeric_limits<std::size_t>::max());
  ClockLog::instance().set_sample(0);
  for (int workgroup = 0; workgroup < 9; ++workgroup)
    EXPECT_NE(timed.find("\"workgroup\":" + std::to_string(workgroup) + "}"), std::string::npos) << workgroup << timed;
}

// A kernel that prepares what a later launch goes by, in many workgroups: all of them leave what they make.
TEST(SampledOnly, LaunchesThatStoreAndMultiplyNothingRunWholeWhereThatIsCheap) {
  // Workgroup i stores i + 1 at its place; the other one multiplies too.
  const std::string store =
      "s_load_dwordx2 s[4:5], s[0:1], 0x0\ns_lshl_b32 s6, s2, 2\ns_add_u32 s3, s2, 1\nv_mov_b32 v1, s6\n"
      "v_mov_b32 v2, s3\ns_waitcnt lgkmcnt(0)\nglobal_store_dword v1, v2, s[4:5]\n";
  const testing::Assembled prepares(store);
  const testing::Assembled multiplies("v_mfma_f32_32x32x16_f16 v[8:23], v[2:5], v[4:7], v[8:23]\n" + store);
  const Settings before = Process::instance().settings();
  Settings settings = before;
  settings.sampled_only = true;
  Process::instance().set_settings(settings);
  ClockLog::instance().set_sample(16);
  constexpr std::uint32_t workgroups = 4096;
  const auto stored_by = [&](const testing::Assembled& kernel) {
    testing::Buffer<std::uint32_t> places(workgroups);
    for (std::uint32_t i = 0; i < workgroups; ++i) places[i] = 0;
    EXPECT_EQ(kernel.run({places.address()}, {workgroups, 1, 1}).text, "");
    std::uint32_t right = 0;
    for (std::uint32_t i = 0; i < workgroups; ++i) right += places[i] == i + 1 ? 1 : 0;
    return right;
  };
  const std::uint32_t prepared = stored_by(prepares);
  const std::uint32_t multiplied = stored_by(multiplies);
  Process::instance().set_settings(before);
  ClockLog::instance().take(std::numeric_limits<std::size_t>::max());
  ClockLog::instance().set_sample(0);
  EXPECT_EQ(prepared, workgroups);
  EXPECT_EQ(multiplied, 14U);
}

// Workgroups that count how many have come, the last of which works for all: each runs, once and in turn, and the last
// one is timed.
TEST(SampledOnly, LaunchesWhoseWorkgroupsWaitForEachOtherRunWhole) {
  const auto counts = [](const std::string& release) {
    return testing::Assembled(
        "v_mfma_f32_32x32x16_f16 v[8:23], v[2:5], v[4:7], v[8:23]\ns_load_dwordx2 s[6:7], s[0:1], 0x0\n"
        "v_mov_b32 v1, 0\n"
        "v_mov_b32 v2, 1\ns_mov_b64 exec, 1\n"
        "s_waitcnt lgkmcnt(0)\n" +
        release +
        "s_waitcnt vmcnt(0)\nglobal_atomic_add v3, v1, v2, s[6:7] sc0\ns_waitcnt vmcnt(0)\nv_readfirstlane_b32 s8, v3\n"
        "s_cmp_lg_u32 s8, 199\ns_cbranch_scc1 2f\ns_movk_i32 s9, 1000\n1:\nv_exp_f32 v4, v4\nv_exp_f32 v5, v5\n"
        "s_sub_u32 s9, s9, 1\ns_cmp_lg_u32 s9, 0\ns_cbranch_scc1 1b\n2:");
  };
  const Settings before = Process::instance().settings();
  Settings settings = before;
  settings.sampled_only = true;
  Process::instance().set_settings(settings);
  ClockLog::instance().set_sample(16);
  const auto time_of = [&](const testing::Assembled& kernel) {
    testing::Buffer<std::uint32_t> counter(1, 0);
    EXPECT_EQ(kernel.run({counter.address()}, {200, 1, 1}).text, "");
    const std::string json = ClockLog::instance().take(std::numeric_limits<std::size_t>::max());
    return std::pair(counter[0], nlohmann::json::parse(json).at("cycles").get<double>());
  };
  const testing::Assembled releasing = counts("buffer_wbl2 sc1\n");
  const auto [all, cycles] = time_of(releasing);
  const auto [all_again, cycles_again] = time_of(releasing);
  const auto [few, without] = time_of(counts(""));
  Process::instance().set_settings(before);
  ClockLog::instance().set_sample(0);
  EXPECT_EQ(all, 200U);
  EXPECT_EQ(all_again, 200U);
  EXPECT_EQ(cycles, cycles_again);
  EXPECT_LT(few, 200U);
  // 25 workgroups of a die release one after the other, then the last one works.
  EXPECT_GT(cycles, (25 * 574) + (1000 * 36));
  EXPECT_LT(without, 10000);
}

// A launch of a size that nobody would run whole: what is not sampled does not run, and the time is the same.
TEST(SampledOnly, RunsTheSampleAndPredictsTheSame) {
  const testing::Assembled kernel("v_mov_b32 v1, 1\nv_exp_f32 v2, v1\nv_exp_f32 v3, v1");
  const Settings before = Process::instance().settings();
  ClockLog::instance().set_sample(16);
  const auto time_of = [&](bool sampled_only, std::uint32_t workgroups) {
    Settings settings = before;
    settings.sampled_only = sampled_only;
    Process::instance().set_settings(settings);
    const std::uint64_t ran = Process::instance().counters().workgroups.load();
    EXPECT_EQ(kernel.run({0}, {workgroups, 1, 1}).text, "");
    const std::string json = ClockLog::instance().take(std::numeric_limits<std::size_t>::max());
    return std::pair(Process::instance().counters().workgroups.load() - ran, json);
  };
  const auto [all, whole] = time_of(false, 4096);
  const auto [few, sampled] = time_of(true, 4096);
  const auto [huge, predicted] = time_of(true, 1'000'000);
  Process::instance().set_settings(before);
  ClockLog::instance().set_sample(0);
  EXPECT_EQ(all, 4096U);
  EXPECT_EQ(few, 14U);  // four with two neighbours each, and the first and the last are counted
  EXPECT_EQ(huge, 14U);
  EXPECT_EQ(whole, sampled);
  EXPECT_NE(predicted.find("\"predicted\":true"), std::string::npos) << predicted;
}

}  // namespace
}  // namespace wavejit::simgpu::clock
