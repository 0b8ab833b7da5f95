// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A launch as a whole, from the traces of some of its workgroups.
#include "simgpu/checkers/clock/grid.h"

#include <cmath>

#include "boards/board.h"
#include "clocked.h"
#include "gtest/gtest.h"

namespace wavejit::simgpu::testing {
namespace {

struct Sampled {
  clock::GridResult grid;
  std::string error;
};

// Runs the kernel in workgroups of one wave and times those of `seeds`.
Sampled time_sample(const KernelSource& source, const std::array<std::uint32_t, 3>& workgroups,
                    const std::vector<clock::Seed>& seeds, const std::vector<std::uint64_t>& arguments,
                    bool warm = false) {
  const Assembled assembled(source);
  const boards::Board& target = assembled.device().target();
  const timing::Timing* timing = timing::find_timing(target);
  if (timing == nullptr) return {.grid = {}, .error = "no timing for the target"};
  const std::vector<std::uint64_t> ids = clock::workgroups_of(seeds);
  clock::TraceRecorder recorder(*timing, ids);
  const Status status = assembled.device().launch({.kernel = &assembled.kernel(),
                                                   .workgroups = workgroups,
                                                   .workgroup_size = {64, 1, 1},
                                                   .kernarg = std::as_bytes(std::span(arguments)),
                                                   .observer = &recorder});
  if (!status.ok()) return {.grid = {}, .error = status.text};
  clock::Program program(*timing, target);
  const std::shared_ptr<const MemoryView> view = DeviceMemory::instance().view();
  clock::LaunchMemory memory;
  memory.warm = warm;
  memory.find = [&](std::uint64_t address) { return view->find(address); };
  auto grid = clock::time_grid(program, {.workgroups = workgroups, .vgprs = source.vgprs}, seeds, recorder.traces(), 0,
                               nullptr, memory);
  if (!grid) return {.grid = {}, .error = grid.error()};
  return {.grid = std::move(*grid), .error = {}};
}

// Each lane reads a line, from where the body has put the offset of its workgroup in v1.
std::string reads_lines_after(const std::string& body) {
  return body + R"(
  s_load_dwordx2 s[6:7], s[0:1], 0x0
  v_lshl_add_u32 v1, v0, 7, v1
  s_waitcnt lgkmcnt(0)
  global_load_dword v2, v1, s[6:7]
  s_waitcnt vmcnt(0))";
}
constexpr std::size_t lines_of_workgroup = 64;
constexpr std::size_t words_of_workgroup = lines_of_workgroup * 128 / sizeof(std::uint32_t);

TEST(Grid, NeighboursOfADieAreFoundWithOthersBetweenThem) {
  // 24 workgroups on eight dies: pairs eight apart, which do not stand side by side in the sample.
  Buffer<std::uint32_t> memory(words_of_workgroup);
  const Sampled sampled = time_sample(
      {.body = reads_lines_after("v_mov_b32 v1, 0")}, {24, 1, 1},
      {{.workgroup = 3, .next = 11}, {.workgroup = 9, .next = 17}, {.workgroup = 15, .next = 23}, {.workgroup = 21}},
      {memory.address()});
  ASSERT_EQ(sampled.error, "");
  std::vector<std::uint64_t> timed;
  timed.reserve(sampled.grid.sample.size());
  for (const clock::SampledTime& time : sampled.grid.sample) timed.push_back(time.workgroup);
  EXPECT_EQ(timed, (std::vector<std::uint64_t>{3, 9, 15, 21}));
  EXPECT_EQ(sampled.grid.units.size(), 4U);
  EXPECT_EQ(sampled.grid.shared_lines, 1);  // all read the same
}

// Times a whole launch of 16 x, four rows and 16 planes as the hook in a launch would.
clock::GridResult time_rows(const std::string& body, const Buffer<std::uint32_t>& memory) {
  const std::array<std::uint32_t, 3> grid = {16, 4, 16};
  const auto seeds = clock::choose_sample(grid, 16, *boards::find_product("gfx950"));
  Sampled sampled = time_sample({.body = reads_lines_after(body)}, grid, seeds, {memory.address()});
  EXPECT_EQ(sampled.error, "");
  return std::move(sampled.grid);
}

// As in attention without groups of heads: x is a head with its own keys, and a die has two of them in turns. Its
// neighbour shares nothing with a workgroup, but the three other rows of its head and sequence do.
TEST(Grid, WorkgroupsThatTakeTurnsOnADieShareWithTheirOwnRowsOnly) {
  Buffer<std::uint32_t> memory(words_of_workgroup * 16 * 16);
  // x + 16 z, of 64 lines each.
  const clock::GridResult grid = time_rows(
      "s_lshl_b32 s5, s4, 4\ns_add_u32 s5, s5, s2\nv_mov_b32 v1, s5\n"
      "v_lshlrev_b32 v1, 13, v1",
      memory);
  EXPECT_EQ(grid.shared_lines, 1);
  ASSERT_EQ(grid.units.size(), 4U);
  // 128 workgroups of a die at a time read 32 heads' lines, which its 32 compute units pay for.
  for (const clock::ComputeUnitResult& unit : grid.units) EXPECT_EQ(unit.memory.memory, lines_of_workgroup);
}

// As with groups of heads: all of a die's workgroups of one plane have the same keys.
TEST(Grid, WorkgroupsOfAPlaneShareWhatBothNeighboursRead) {
  Buffer<std::uint32_t> memory(words_of_workgroup * 16);
  const clock::GridResult grid = time_rows("v_mov_b32 v1, s4\nv_lshlrev_b32 v1, 13, v1", memory);
  EXPECT_EQ(grid.shared_lines, 1);
  ASSERT_EQ(grid.units.size(), 4U);
  // A die reads the lines of 16 planes by 32 compute units, and memory is asked once for eight dies.
  for (const clock::ComputeUnitResult& unit : grid.units) {
    EXPECT_EQ(unit.memory.memory, lines_of_workgroup / 2 / 8);
    EXPECT_EQ(unit.memory.mall_hits, lines_of_workgroup / 2 - lines_of_workgroup / 2 / 8);
  }
}

TEST(Grid, WorkgroupsWithLinesOfTheirOwnPayForAllOfThem) {
  Buffer<std::uint32_t> memory(words_of_workgroup * 16 * 4 * 16);
  const clock::GridResult grid = time_rows(
      "s_lshl_b32 s5, s4, 2\ns_add_u32 s5, s5, s3\ns_lshl_b32 s5, s5, 4\n"
      "s_add_u32 s5, s5, s2\nv_mov_b32 v1, s5\nv_lshlrev_b32 v1, 13, v1",
      memory);
  EXPECT_EQ(grid.shared_lines, 0);
  for (const clock::ComputeUnitResult& unit : grid.units) EXPECT_GE(unit.memory.memory, lines_of_workgroup);
}

// 64 workgroups of a die read 64 lines each of an array of 512: eight of them read a line, whichever they are. Of an array
// of 64 times as many, every line may be one's own.
TEST(Grid, WorkgroupsThatGatherFromAllOfAnArrayShareItsLines) {
  const auto lines_of_memory = [](std::uint32_t lines) {
    const Buffer<std::uint32_t> memory(std::size_t{lines} * 128 / sizeof(std::uint32_t));
    const std::string scattered = "s_mul_i32 s2, s2, 0x9e3779b1\ns_and_b32 s2, s2, " + std::to_string(lines - 64) +
                                  "\ns_lshl_b32 s2, s2, 7\nv_mov_b32 v1, s2";
    const Sampled sampled =
        time_sample({.body = reads_lines_after(scattered)}, {512, 1, 1},
                    {{.workgroup = 5}, {.workgroup = 140}, {.workgroup = 275}, {.workgroup = 410}}, {memory.address()});
    EXPECT_EQ(sampled.error, "");
    return sampled.grid.units.front().memory.memory;
  };
  EXPECT_LE(lines_of_memory(512), lines_of_workgroup / 4);
  EXPECT_EQ(lines_of_memory(64 * 512), lines_of_workgroup * 2);  // two workgroups a compute unit
}

// Waves that only multiply, two a SIMD: the older one of them is done when the younger has hardly begun, and a mean
// of their times would have the pipes busy for more than all of the time.
TEST(Grid, MatrixPipesAreBusyForAllOfTheTimeAtMost) {
  std::string body = "s_mov_b32 s8, 16\n1:\n";
  for (int i = 0; i < 32; ++i) body += "v_mfma_f32_32x32x8_f16 v[8:23], v[2:3], v[4:5], v[8:23]\n";
  body += "s_sub_u32 s8, s8, 1\ns_cmp_lg_u32 s8, 0\ns_cbranch_scc1 1b";
  const Sampled sampled =
      time_sample({.body = body, .vgprs = 256}, {2048, 1, 1}, {{.workgroup = 1024, .next = 1032}}, {0});
  ASSERT_EQ(sampled.error, "");
  EXPECT_EQ(sampled.grid.resident, 8U);
  EXPECT_LE(sampled.grid.matrix_busy, 1);
  EXPECT_GT(sampled.grid.matrix_busy, 0.9);  // the last of a die's workgroups begin 1,560 cycles after the first
}

// The older one of two waves of a SIMD is done when the younger has half of its work before it.
TEST(Grid, ALaunchEndsWithItsLastWorkgroup) {
  std::string body = "v_mov_b32 v1, 0\n";
  for (int i = 0; i < 512; ++i) body += "v_add_u32 v1, v1, v0\n";
  const Sampled sampled = time_sample({.body = body}, {2048, 1, 1}, {{.workgroup = 1024, .next = 1032}}, {0});
  ASSERT_EQ(sampled.error, "");
  EXPECT_EQ(sampled.grid.resident, 8U);
  EXPECT_GE(sampled.grid.cycles, sampled.grid.units.front().cycles);
}

TEST(Grid, ALaunchWithoutWorkgroupsIsNotTimed) {
  const timing::Timing& timing = *timing::find_timing(*targets::find_target("gfx950"));
  clock::Program program(timing, *boards::find_product("gfx950"));
  for (const std::array<std::uint32_t, 3>& none : {std::array{0U, 1U, 1U}, {1U, 0U, 1U}, {4U, 4U, 0U}}) {
    const auto grid = clock::time_grid(program, {.workgroups = none, .vgprs = 64}, {}, {}, 0, nullptr, {});
    ASSERT_FALSE(grid);
    EXPECT_EQ(grid.error(), "the launch has no workgroup");
  }
}

// 65,536 workgroups that do nothing: each has left before the die has begun as many as have places.
TEST(Grid, ADieBeginsWorkgroupsOneAfterTheOther) {
  constexpr double of_die = 65'536 / 8.0;
  const Sampled sampled = time_sample({.body = ""}, {65'536, 1, 1}, {{.workgroup = 1024}}, {0});
  ASSERT_EQ(sampled.error, "");
  const double apart = timing::find_timing(*targets::find_target("gfx950"))->launch.workgroup.value;
  EXPECT_NEAR(static_cast<double>(sampled.grid.cycles - sampled.grid.cold_cycles), apart * of_die, 1000);
}

// Workgroups that read 64 lines each, four a compute unit, one of them traced beside the other: both find theirs.
TEST(Grid, BothWorkgroupsOfAComputeUnitFindTheirLinesInAWarmL2) {
  const Buffer<std::uint32_t> memory(words_of_workgroup * 1024);
  const Sampled sampled = time_sample({.body = reads_lines_after("s_lshl_b32 s2, s2, 13\nv_mov_b32 v1, s2")},
                                      {1024, 1, 1}, {{.workgroup = 512, .next = 520}}, {memory.address()}, true);
  ASSERT_EQ(sampled.error, "");
  const clock::MemoryCounts& counts = sampled.grid.units.front().memory;
  EXPECT_EQ(sampled.grid.resident, 4U);
  EXPECT_EQ(counts.memory + counts.mall_hits, 0U);
  EXPECT_GT(counts.l2_hits, 0U);
}

// Products of tiles: the next workgroup reads another column, the next row another row. What the workgroup beside reads
// and the seed does not is shared like what the seed reads and that one does not.
TEST(Grid, LinesOfTheWorkgroupBesideAreSharedAsTheSeedsAre) {
  const Buffer<std::uint32_t> memory(words_of_workgroup * 64);
  const std::array<std::uint32_t, 3> shape = {32, 32, 1};
  const Sampled sampled =
      time_sample({.body = reads_lines_after("s_lshl_b32 s5, s2, 13\nv_mov_b32 v1, s5\ns_add_u32 s4, s3, 32\n"
                                             "s_lshl_b32 s4, s4, 13\nv_mov_b32 v3, s4\nv_lshl_add_u32 v3, v0, 7, v3") +
                           "\nglobal_load_dword v4, v3, s[6:7]\ns_waitcnt vmcnt(0)"},
                  shape, clock::choose_sample(shape, 16, *boards::find_product("gfx950")), {memory.address()});
  ASSERT_EQ(sampled.error, "");
  EXPECT_EQ(sampled.grid.resident, 4U);
  // Each die has 128 workgroups at a time on 32 compute units: four columns, 32 rows.
  for (const clock::ComputeUnitResult& unit : sampled.grid.units)
    EXPECT_EQ(unit.memory.memory + unit.memory.mall_hits, (4 + 32) * lines_of_workgroup / 32) << unit.memory.memory;
}

// As AITER's grid: x is a query block, eight of a head side by side on eight dies. No die has two that read the same,
// and memory is asked once for all of them.
TEST(Grid, WorkgroupsOfARowOnDifferentDiesShareTheLastLevelCache) {
  Buffer<std::uint32_t> memory(words_of_workgroup * 16 * 2);
  const std::array<std::uint32_t, 3> shape = {8, 16, 2};  // one each compute unit
  const auto seeds = clock::choose_sample(shape, 16, *boards::find_product("gfx950"));
  // y + 16 z, of 64 lines each.
  const Sampled sampled = time_sample(
      {.body =
           reads_lines_after("s_lshl_b32 s5, s4, 4\ns_add_u32 s5, s5, s3\nv_mov_b32 v1, s5\nv_lshlrev_b32 v1, 13, v1")},
      shape, seeds, {memory.address()});
  ASSERT_EQ(sampled.error, "");
  ASSERT_EQ(sampled.grid.units.size(), 4U);
  EXPECT_EQ(sampled.grid.shared_lines, 0);
  for (const clock::ComputeUnitResult& unit : sampled.grid.units) EXPECT_EQ(unit.memory.memory, lines_of_workgroup / 8);
}

// Nine heads by eight query blocks: no die has two workgroups of a head at a time, and each of eight has one.
TEST(Grid, HeadsThatGoUnevenlyRoundTheDiesAskMemoryOnce) {
  Buffer<std::uint32_t> memory(words_of_workgroup * 9 * 3);
  const std::array<std::uint32_t, 3> shape = {9, 8, 3};  // one each compute unit
  // x + 9 z, of 64 lines each.
  const Sampled sampled = time_sample(
      {.body =
           reads_lines_after("s_mul_i32 s5, s4, 9\ns_add_u32 s5, s5, s2\nv_mov_b32 v1, s5\nv_lshlrev_b32 v1, 13, v1")},
      shape, clock::choose_sample(shape, 16, *boards::find_product("gfx950")), {memory.address()});
  ASSERT_EQ(sampled.error, "");
  EXPECT_EQ(sampled.grid.shared_lines, 0);
  for (const clock::ComputeUnitResult& unit : sampled.grid.units) EXPECT_EQ(unit.memory.memory, lines_of_workgroup / 8);
}

// How many lines a workgroup's compute unit fetches for itself, from memory and from the last level cache.
struct Fetched {
  double from_memory = 0;
  double in_all = 0;
};
// Workgroups read one of so many arrays of 64 lines: `array` leaves its number in s5.
Fetched fetched_by_readers(const std::array<std::uint32_t, 3>& shape, std::uint32_t arrays, const std::string& array) {
  const Buffer<std::uint32_t> memory(words_of_workgroup * arrays);
  const Sampled sampled =
      time_sample({.body = reads_lines_after(array + "\nv_mov_b32 v1, s5\nv_lshlrev_b32 v1, 13, v1")}, shape,
                  clock::choose_sample(shape, 16, *boards::find_product("gfx950")), {memory.address()});
  EXPECT_EQ(sampled.error, "");
  Fetched fetched;
  for (const clock::ComputeUnitResult& unit : sampled.grid.units) {
    const auto units = static_cast<double>(sampled.grid.units.size());
    fetched.from_memory += static_cast<double>(unit.memory.memory) / units;
    fetched.in_all += static_cast<double>(unit.memory.memory + unit.memory.mall_hits) / units;
  }
  return fetched;
}

// Each die has one of a plane's ten workgroups or two: a line has 1.25 readers of a die in the mean.
TEST(Grid, TenReadersOfEightDiesFetchOnceADie) {
  const Fetched fetched = fetched_by_readers({10, 1, 24}, 24, "s_mov_b32 s5, s4");
  EXPECT_NEAR(fetched.in_all, lines_of_workgroup / 1.25, 1);
  EXPECT_NEAR(fetched.from_memory, lines_of_workgroup / 10.0, 1);
}

// No workgroup that a die has after another shares with it; fourteen read a line all the same, on eight dies.
TEST(Grid, GroupsThatNoNeighbourOfTheDieShowsAreCountedByTheirIds) {
  const Fetched fetched = fetched_by_readers(
      {35, 2, 3}, 15, "s_mul_i32 s5, s2, 37\ns_lshr_b32 s5, s5, 8\ns_mul_i32 s6, s4, 5\ns_add_u32 s5, s5, s6");
  EXPECT_NEAR(fetched.in_all, lines_of_workgroup / (14.0 / 8), 1);
  EXPECT_NEAR(fetched.from_memory, lines_of_workgroup / 14.0, 1);
}

// Two groups of a row: a die has four workgroups of it, two of each.
TEST(Grid, NeighboursOfADieAreNotAllOfAGroupOfHalfARow) {
  const Fetched fetched =
      fetched_by_readers({32, 1, 8}, 16, "s_lshr_b32 s5, s2, 4\ns_mul_i32 s6, s4, 2\ns_add_u32 s5, s5, s6");
  EXPECT_NEAR(fetched.in_all, lines_of_workgroup / 2.0, 1);
  EXPECT_NEAR(fetched.from_memory, lines_of_workgroup / 16.0, 1);
}

// What a launch takes whose workgroups of one wave read 64 lines of their own with each load.
double cycles_of_readers(std::uint32_t workgroups, unsigned vgprs, unsigned loads) {
  const Buffer<std::uint32_t> memory(words_of_workgroup * loads * workgroups);
  std::string body = reads_lines_after("s_mul_i32 s2, s2, " + std::to_string(loads * 0x2000) + "\nv_mov_b32 v1, s2");
  for (unsigned i = 1; i < loads; ++i) body += "\nv_add_u32 v1, 0x2000, v1\nglobal_load_dword v2, v1, s[6:7]";
  const Sampled sampled =
      time_sample({.body = body + "\ns_waitcnt vmcnt(0)", .vgprs = vgprs}, {workgroups, 1, 1},
                  clock::choose_sample({workgroups, 1, 1}, 16, *boards::find_product("gfx950")), {memory.address()});
  EXPECT_EQ(sampled.error, "");
  return static_cast<double>(sampled.grid.cycles);
}

// All workgroups have an equal part of memory's rate, also those that stand two on a compute unit.
TEST(Grid, AWorkgroupMoreThanComputeUnitsIsOneOfThemAll) {
  const double full = cycles_of_readers(256, 64, 16);
  EXPECT_LT(cycles_of_readers(257, 64, 16), 1.15 * full);
  EXPECT_GT(cycles_of_readers(512, 64, 16), 1.7 * full);
}

// 256 registers: eight waves a compute unit, 2,048 of the GPU.
TEST(Grid, ALastRoundOfFewHasMemoryToItself) {
  const double full = cycles_of_readers(2048, 256, 4);
  EXPECT_LT(cycles_of_readers(2049, 256, 4), 1.4 * full);
  EXPECT_GT(cycles_of_readers(4096, 256, 4), 1.8 * full);
}

// Those with one workgroup less may be the last: what the fullest unit leaves of memory is not all theirs.
TEST(Grid, MoreWorkTakesNoLess) {
  double before = 0;
  for (const std::uint32_t workgroups : {768U, 769U, 800U, 900U, 1000U, 1024U}) {
    const double cycles = cycles_of_readers(workgroups, 64, 16);
    EXPECT_GE(cycles, before) << workgroups;
    before = cycles;
  }
}

TEST(Grid, ALastRoundOfFewIsShortBehindManyToo) {
  const double full = cycles_of_readers(6 * 2048, 256, 4);
  EXPECT_LT(cycles_of_readers((6 * 2048) + 1, 256, 4), 1.1 * full);
}

// The launch has ended when memory has what it wrote.
TEST(Grid, ALaunchPaysForWhatItWrites) {
  const auto cycles_of = [](const std::string& store, std::uint32_t workgroups) {
    Buffer<std::uint32_t> memory(std::size_t{workgroups} * 64 * 32);
    const Sampled sampled =
        time_sample({.body = "s_load_dwordx2 s[6:7], s[0:1], 0x0\ns_lshl_b32 s5, s2, 13\nv_lshl_add_u32 v1, v0, 7, s5\n"
                             "s_waitcnt lgkmcnt(0)\n" +
                             store},
                    {workgroups, 1, 1}, {{.workgroup = 8}}, {memory.address()});
    EXPECT_EQ(sampled.error, "");
    return sampled.grid.cycles;
  };
  // A line each lane, 64 a workgroup, four a compute unit: their share of 2,500 bytes a clock.
  const double of_memory = 1024.0 * 64 * 128 / 2500;
  const double more = static_cast<double>(cycles_of("global_store_dword v1, v0, s[6:7]", 1024)) -
                      static_cast<double>(cycles_of("v_mov_b32 v2, v1", 1024));
  EXPECT_GT(more, 0.85 * of_memory);  // some of it passes while the waves begin and end
  EXPECT_LT(more, 2 * of_memory);
}

// The pipes' cycles and the launch's come from the same workgroups: what all of them multiply is never more than busy.
TEST(Grid, BusyPipesAreThoseOfAllWorkgroups) {
  std::string body =
      "s_and_b32 s8, s2, 3\ns_lshl_b32 s8, s8, 6\ns_sleep 1\n2:\ns_nop 7\ns_sub_u32 s8, s8, 1\n"
      "s_cmp_gt_i32 s8, 0\ns_cbranch_scc1 2b\n";
  for (int i = 0; i < 64; ++i) body += "v_mfma_f32_32x32x8_f16 v[8:23], v[2:3], v[4:5], v[8:23]\n";
  const Sampled sampled = time_sample({.body = body, .vgprs = 256}, {2048, 1, 1},
                                      clock::choose_sample({2048, 1, 1}, 16, *boards::find_product("gfx950")), {0});
  ASSERT_EQ(sampled.error, "");
  // 64 products of 32 cycles each.
  const double useful = 2048.0 * 64 * 32 / (256 * 4 * static_cast<double>(sampled.grid.cycles));
  EXPECT_NEAR(sampled.grid.matrix_busy, useful, 1e-6);
}

// Keys of sequences that are not there: every workgroup of the sample leaves before the products.
TEST(Grid, ASampleThatRanNoMatrixInstructionOfAKernelThatHasSomeIsInDoubt) {
  const std::string products = "v_mfma_f32_32x32x8_f16 v[8:23], v[2:3], v[4:5], v[8:23]\n1:";
  const auto time = [](const std::string& body) {
    Sampled sampled = time_sample({.body = body, .vgprs = 64}, {2048, 1, 1}, {{.workgroup = 1024}}, {0});
    EXPECT_EQ(sampled.error, "");
    return sampled.grid.doubt;
  };
  EXPECT_NE(time("s_cmp_ge_u32 s2, 64\ns_cbranch_scc1 1f\n" + products).find("none of the 1 workgroups"),
            std::string::npos);
  EXPECT_EQ(time(products), "");
  EXPECT_EQ(time("v_mov_b32 v1, 1"), "");
}

TEST(Grid, KernelsThatDoNothing) {
  const Sampled sampled = time_sample({.body = ""}, {3, 1, 1}, {{.workgroup = 1}}, {0});
  ASSERT_EQ(sampled.error, "");
  EXPECT_EQ(sampled.grid.matrix_busy, 0);
  EXPECT_EQ(sampled.grid.cold_cycles, 400U + 740 - 16);  // code and arguments are fetched whatever it does
  EXPECT_GT(sampled.grid.cycles, sampled.grid.cold_cycles);
  EXPECT_EQ(sampled.grid.steady_matrix_busy, 0);
  EXPECT_TRUE(std::isfinite(sampled.grid.busy));
}

}  // namespace
}  // namespace wavejit::simgpu::testing
