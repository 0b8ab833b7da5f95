// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The environment and the counters.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <format>

#include "assembled.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "simgpu/process/check.h"
#include "simgpu/process/clock_config.h"
#include "simgpu/process/device_names.h"
#include "simgpu/process/process.h"
#include "simgpu/process/queue_config.h"

namespace wavejit::simgpu::testing {
namespace {

using ::testing::HasSubstr;

class Environment : public ::testing::Test {
 protected:
  void SetUp() override { clear(); }
  void TearDown() override { clear(); }
  static void clear() {
    for (const char* name :
         {"WAVEJIT_DEVICE", "WAVEJIT_SIM_SCHEDULE", "WAVEJIT_SIM_SEED", "WAVEJIT_SIM_THREADS",
          "WAVEJIT_SIM_INSTRUCTION_LIMIT", "WAVEJIT_SIM_ENGINE", "WAVEJIT_SIM_TRANSLATE_AFTER", "WAVEJIT_SIM_CHECK",
          "WAVEJIT_SIM_MATRIX", "WAVEJIT_SIM_TRANSCENDENTALS", "WAVEJIT_SIM_TARGET", "WAVEJIT_SIM_QUEUE_PATIENCE",
          "WAVEJIT_SIM_CYCLES", "WAVEJIT_SIM_WARM", "WAVEJIT_SIM_EVENT_COST", "WAVEJIT_SIM_REPORT",
          "WAVEJIT_SIM_SUMMARY", "WAVEJIT_SIM_RULES"}) {
      unsetenv(name);
    }
  }
  static Config read(std::string& warnings) {
    ::testing::internal::CaptureStderr();
    const Config config = read_config();
    warnings = ::testing::internal::GetCapturedStderr();
    return config;
  }
};

TEST_F(Environment, Defaults) {
  std::string warnings;
  const Config config = read(warnings);
  EXPECT_EQ(warnings, "");
  EXPECT_EQ(config.settings.schedule, Schedule::in_order);
  EXPECT_EQ(config.settings.threads, 0u);
  EXPECT_EQ(config.settings.matrix, MatrixSums::sequential);
  EXPECT_EQ(config.settings.transcendentals, Transcendentals::nearest);
  EXPECT_EQ(config.device_count, 1);
  EXPECT_EQ(config.clock_sample, 0U);
  EXPECT_EQ(config.report, "");
  EXPECT_EQ(config.summary, Summary::off);
}

TEST_F(Environment, ClockReportAndSummaryAreRead) {
  std::string warnings;
  setenv("WAVEJIT_SIM_CYCLES", "on", 1);
  setenv("WAVEJIT_SIM_REPORT", "/tmp/%p-of-%p.json", 1);
  setenv("WAVEJIT_SIM_SUMMARY", "findings", 1);
  Config config = read(warnings);
  EXPECT_EQ(warnings, "");
  EXPECT_GT(config.clock_sample, 0U);
  EXPECT_EQ(config.report, std::format("/tmp/{0}-of-{0}.json", getpid()));
  EXPECT_EQ(config.summary, Summary::findings);
  setenv("WAVEJIT_SIM_SUMMARY", "on", 1);
  setenv("WAVEJIT_SIM_REPORT", "here.json", 1);
  config = read(warnings);
  EXPECT_EQ(config.report, std::filesystem::current_path() / "here.json") << "programs change their folder";
  EXPECT_EQ(config.summary, Summary::on);
  EXPECT_FALSE(read_clock_config().warm);
  setenv("WAVEJIT_SIM_WARM", "on", 1);
  EXPECT_TRUE(read_clock_config().warm);
  setenv("WAVEJIT_SIM_CYCLES", "12", 1);
  setenv("WAVEJIT_SIM_SUMMARY", "short", 1);
  config = read(warnings);
  EXPECT_EQ(config.clock_sample, 0U);
  EXPECT_EQ(config.summary, Summary::off);
  EXPECT_THAT(warnings, HasSubstr("WAVEJIT_SIM_CYCLES='12' is not understood; it takes on or off; using off"));
  EXPECT_THAT(warnings, HasSubstr("WAVEJIT_SIM_SUMMARY='short' is not understood; it takes off, findings or on"));
}

// A report that cannot be written would look like one without findings.
TEST_F(Environment, AReportWithoutAFolderEndsTheProgram) {
  setenv("WAVEJIT_SIM_REPORT", "/nowhere/report.json", 1);
  EXPECT_EXIT(read_config(), ::testing::ExitedWithCode(2),
              "WAVEJIT_SIM_REPORT='/nowhere/report.json' is not understood; it takes a file in a folder that exists");
}

// What beneath AMD's runtime says which GPUs there are: WAVEJIT_DEVICE names AMD's library then.
TEST_F(Environment, TheTargetCountsWhereNoDeviceIsNamed) {
  std::string warnings;
  setenv("WAVEJIT_SIM_TARGET", "gfx942x2", 1);
  for (const char* device : {"", "hip"}) {
    setenv("WAVEJIT_DEVICE", device, 1);
    const Config config = read(warnings);
    EXPECT_EQ(config.device_target, "gfx942");
    EXPECT_EQ(config.device_count, 2);
    EXPECT_EQ(warnings, "");
  }
  setenv("WAVEJIT_DEVICE", "sim:gfx950", 1);
  EXPECT_EQ(read(warnings).device_target, "gfx950");
  setenv("WAVEJIT_DEVICE", "hip", 1);
  for (const char* wrong : {"gfx1", "gfx950x0", "gfx950x2:1", "sim:gfx950"}) {
    setenv("WAVEJIT_SIM_TARGET", wrong, 1);
    EXPECT_EQ(read(warnings).device_target, "gfx950");
    EXPECT_THAT(warnings, HasSubstr("WAVEJIT_SIM_TARGET='")) << wrong;
  }
}

TEST_F(Environment, IsRead) {
  setenv("WAVEJIT_DEVICE", "sim:gfx942x3", 1);
  setenv("WAVEJIT_SIM_SCHEDULE", "random", 1);
  setenv("WAVEJIT_SIM_SEED", "0x10", 1);
  setenv("WAVEJIT_SIM_THREADS", "2", 1);
  setenv("WAVEJIT_SIM_INSTRUCTION_LIMIT", "5000", 1);
  setenv("WAVEJIT_SIM_ENGINE", "compile", 1);
  setenv("WAVEJIT_SIM_TRANSLATE_AFTER", "7", 1);
  std::string warnings;
  const Config config = read(warnings);
  EXPECT_EQ(warnings, "");
  EXPECT_EQ(config.device_target, "gfx942");
  EXPECT_EQ(config.device_count, 3);
  EXPECT_EQ(config.settings.schedule, Schedule::random);
  EXPECT_EQ(config.settings.seed, 16u);
  EXPECT_EQ(config.settings.threads, 2u);
  EXPECT_EQ(config.settings.instruction_limit, 5000u);
  EXPECT_EQ(config.settings.engine, Engine::compile);
  EXPECT_EQ(config.settings.translate_after, 7u);
}

TEST_F(Environment, APatienceOfQueuesIsSeconds) {
  EXPECT_EQ(read_config().patience, std::chrono::seconds(10));
  setenv("WAVEJIT_SIM_QUEUE_PATIENCE", "90", 1);
  EXPECT_EQ(read_config().patience, std::chrono::seconds(90));
  setenv("WAVEJIT_SIM_QUEUE_PATIENCE", "0", 1);
  EXPECT_EQ(read_config().patience, std::chrono::seconds(0));
  setenv("WAVEJIT_SIM_QUEUE_PATIENCE", "soon", 1);
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(read_config().patience, std::chrono::seconds(10));
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("WAVEJIT_SIM_QUEUE_PATIENCE='soon' is not understood; it takes a number from 0 to"));
}

TEST(DeviceNames, AreTargetsAndBoardsAndHowMany) {
  for (const char* right : {"gfx950", "gfx942x8", "gfx942@6x38", "gfx942@6x38x2", "gfx950x64"})
    EXPECT_TRUE(devices_named(right)) << right;
  for (const char* wrong :
       {"", "gfx1", "gfx950x0", "gfx950x65", "gfx950x2:2", "sim:gfx950", "gfx942@6x", "gfx942@0x38"}) {
    EXPECT_FALSE(devices_named(wrong)) << wrong;
  }
  const auto boards = devices_named("gfx942@6x38x2:1");
  ASSERT_TRUE(boards);
  EXPECT_EQ(boards->target, "gfx942@6x38");
  EXPECT_EQ(boards->count, 2);
  EXPECT_EQ(boards->ordinal, 1u);
  EXPECT_THAT(accepted_devices(), HasSubstr("a target of gfx942, gfx950, gfx1201, gfx1200, or a board of one as"));
}

TEST_F(Environment, BoardsAreRead) {
  setenv("WAVEJIT_DEVICE", "sim:gfx942@6x38x2:1", 1);
  std::string warnings;
  const Config config = read(warnings);
  EXPECT_EQ(warnings, "");
  EXPECT_EQ(config.device_target, "gfx942@6x38");
  EXPECT_EQ(config.device_count, 2);
}

TEST(Boards, AreDevicesOfTheirOwnWithTheirCounts) {
  const auto whole = Device::open("gfx942", 1);
  const auto board = Device::open("gfx942@6x38", 2);
  ASSERT_TRUE(whole && board);
  EXPECT_NE(whole->front(), board->front());
  const boards::Board& target = Device::find(board->back())->target();
  EXPECT_EQ(target.xcds, 6);
  EXPECT_EQ(target.compute_units, 228);
  EXPECT_EQ(Device::open("gfx942@6x38", 1)->front(), board->front()) << "the same board again";
  EXPECT_FALSE(Device::open("gfx942@6", 1));
}

// Workgroups go round the dies that the board has.
TEST(Boards, WorkgroupsSeeTheDieThatTheyAreOn) {
  const Assembled kernel({.body = R"(
  s_load_dwordx2 s[6:7], s[0:1], 0x0
  s_getreg_b32 s8, hwreg(HW_REG_XCC_ID, 0, 4)
  s_lshl_b32 s9, s2, 2
  v_mov_b32 v1, s9
  v_mov_b32 v2, s8
  s_waitcnt lgkmcnt(0)
  global_store_dword v1, v2, s[6:7])",
                          .target = "gfx942"});
  Buffer<std::uint32_t> dies(20);
  ASSERT_TRUE(kernel.run({dies.address()}, {20, 1, 1}).ok());
  for (std::uint32_t i = 0; i < 20; ++i) EXPECT_EQ(dies[i], i % 8) << i;
}

TEST_F(Environment, UnknownValuesWarnOnceAndKeepTheDefault) {
  const std::pair<const char*, const char*> bad[] = {
      {"WAVEJIT_DEVICE", "sim:gfx9000"},       {"WAVEJIT_DEVICE", "sim:gfx950x0"},     {"WAVEJIT_DEVICE", "cuda"},
      {"WAVEJIT_DEVICE", "sim:gfx942:xnack+"}, {"WAVEJIT_SIM_SCHEDULE", "fast"},       {"WAVEJIT_SIM_SEED", "12x"},
      {"WAVEJIT_SIM_THREADS", "-1"},           {"WAVEJIT_SIM_INSTRUCTION_LIMIT", "0"}, {"WAVEJIT_SIM_ENGINE", "jit"},
      {"WAVEJIT_SIM_TRANSLATE_AFTER", "often"}};
  for (const auto& [name, value] : bad) {
    clear();
    setenv(name, value, 1);
    std::string warnings;
    const Config config = read(warnings);
    EXPECT_THAT(warnings, HasSubstr(name));
    EXPECT_THAT(warnings, HasSubstr(value));
    EXPECT_EQ(std::ranges::count(warnings, '\n'), 1) << warnings;
    EXPECT_EQ(config.device_target, "gfx950");
    EXPECT_EQ(config.settings.schedule, Schedule::in_order);
    EXPECT_EQ(config.settings.seed, 1u);
    EXPECT_EQ(config.settings.threads, 0u);
    EXPECT_EQ(config.settings.engine, Engine::interpret);
  }
}

TEST_F(Environment, ChecksAreRead) {
  const std::pair<const char*, std::uint32_t> lists[] = {
      {"none", 0}, {"all", all_checks}, {"races,waits", 3}, {"bounds", static_cast<std::uint32_t>(Check::bounds)}};
  for (const auto& [list, checks] : lists) {
    setenv("WAVEJIT_SIM_CHECK", list, 1);
    std::string warnings;
    EXPECT_EQ(read(warnings).settings.checks, checks) << list;
    EXPECT_EQ(warnings, "");
  }
}

// A program that was to be checked must not end well because it was not.
TEST_F(Environment, AWrongNameOfACheckEndsTheProgram) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  for (const char* list : {"race", "waits,race", "waits,", "All"}) {
    setenv("WAVEJIT_SIM_CHECK", list, 1);
    EXPECT_EXIT(read_config(), ::testing::ExitedWithCode(2),
                std::string("WAVEJIT_SIM_CHECK='") + list + "'.*all, none or a list of waits, races, ");
  }
  setenv("WAVEJIT_SIM_CHECK", "waits,race", 1);
  EXPECT_EXIT(read_config(), ::testing::ExitedWithCode(2), "with commas between them .did you mean 'races'..");
  setenv("WAVEJIT_SIM_CHECK", "bonuds", 1);
  EXPECT_EXIT(read_config(), ::testing::ExitedWithCode(2), "with commas between them .did you mean 'bounds'..");
}

TEST_F(Environment, RulesAreReadOrEndTheProgram) {
  std::string warnings;
  EXPECT_EQ(read(warnings).settings.rules, Rules::compiler);
  setenv("WAVEJIT_SIM_RULES", "strict", 1);
  EXPECT_EQ(read(warnings).settings.rules, Rules::strict);
  setenv("WAVEJIT_SIM_RULES", "compiler", 1);
  EXPECT_EQ(read(warnings).settings.rules, Rules::compiler);
  EXPECT_EQ(warnings, "");
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  setenv("WAVEJIT_SIM_RULES", "lax", 1);
  EXPECT_EXIT(read_config(), ::testing::ExitedWithCode(2), "WAVEJIT_SIM_RULES='lax'.*compiler or strict");
}

TEST_F(Environment, ArithmeticIsRead) {
  std::string warnings;
  setenv("WAVEJIT_SIM_SEED", "9", 1);
  setenv("WAVEJIT_SIM_MATRIX", "seeded:0x20", 1);
  setenv("WAVEJIT_SIM_TRANSCENDENTALS", "seeded", 1);
  Settings settings = read(warnings).settings;
  EXPECT_EQ(settings.matrix, MatrixSums::seeded);
  EXPECT_EQ(settings.matrix_seed, 32U);
  EXPECT_EQ(settings.transcendentals, Transcendentals::seeded);
  EXPECT_EQ(settings.transcendentals_seed, 9U);
  setenv("WAVEJIT_SIM_MATRIX", "cdna3", 1);
  setenv("WAVEJIT_SIM_TRANSCENDENTALS", "nearest", 1);
  settings = read(warnings).settings;
  EXPECT_EQ(settings.matrix, MatrixSums::cdna3);
  EXPECT_EQ(settings.transcendentals, Transcendentals::nearest);
  setenv("WAVEJIT_SIM_MATRIX", "sequential", 1);
  EXPECT_EQ(read(warnings).settings.matrix, MatrixSums::sequential);
  EXPECT_EQ(warnings, "");
}

TEST_F(Environment, AWrongArithmeticEndsTheProgram) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  for (const char* value : {"cdna4", "seeded:", "seeded:x", "seeded7", "Sequential"}) {
    clear();
    setenv("WAVEJIT_SIM_MATRIX", value, 1);
    EXPECT_EXIT(read_config(), ::testing::ExitedWithCode(2),
                std::string("WAVEJIT_SIM_MATRIX='") + value + "'.*sequential, cdna3, seeded or seeded:<number>");
  }
  for (const char* value : {"exact", "seeded:1.5"}) {
    clear();
    setenv("WAVEJIT_SIM_TRANSCENDENTALS", value, 1);
    EXPECT_EXIT(read_config(), ::testing::ExitedWithCode(2),
                std::string("WAVEJIT_SIM_TRANSCENDENTALS='") + value + "'.*nearest, seeded or seeded:<number>");
  }
}

TEST(Counters, CountInstructionsOfWaves) {
  const Assembled kernel("s_nop 0\ns_nop 0");
  Counters& counters = Process::instance().counters();
  const std::uint64_t launches = counters.launches;
  const std::uint64_t workgroups = counters.workgroups;
  const std::uint64_t instructions = counters.wave_instructions;
  ASSERT_TRUE(kernel.run({0}, {5, 1, 1}, {128, 1, 1}).ok());
  EXPECT_EQ(counters.launches - launches, 1u);
  EXPECT_EQ(counters.workgroups - workgroups, 5u);
  EXPECT_EQ(counters.wave_instructions - instructions, 5u * 2 * 3);
}

TEST(Counters, CountMatrixInstructions) {
  const Assembled kernel(KernelSource{.body = "v_mfma_f32_16x16x16_f16 v[0:3], v[4:5], v[6:7], v[0:3]\ns_nop 0"});
  Counters& counters = Process::instance().counters();
  const std::uint64_t matrix = counters.matrix_instructions;
  ASSERT_TRUE(kernel.run({0}, {1, 1, 1}, {256, 1, 1}).ok());
  EXPECT_EQ(counters.matrix_instructions - matrix, 4u);
}

TEST(Counters, TimeMatrixInstructionsWhenAsked) {
  const Assembled kernel(KernelSource{.body = "v_mfma_f32_16x16x16_f16 v[0:3], v[4:5], v[6:7], v[0:3]\ns_nop 0"});
  const ScopedSettings scope;
  Settings settings = scope.before();
  const auto& counted = Process::instance().counters().matrix_nanoseconds;
  const std::uint64_t before = counted;
  ASSERT_TRUE(kernel.run({0}).ok());
  EXPECT_EQ(counted, before);
  settings.time_matrix = true;
  scope.set(settings);
  ASSERT_TRUE(kernel.run({0}, {64, 1, 1}).ok());
  EXPECT_GT(counted, before);
}

TEST(Reports, AreTakenOnce) {
  Process& process = Process::instance();
  process.take_reports(1 << 20);
  process.report("one");
  process.report("two");
  EXPECT_EQ(process.take_reports(0), "one\ntwo\n");
  EXPECT_EQ(process.take_reports(8), "one\ntwo\n");  // would be cut: nothing is forgotten
  EXPECT_EQ(process.take_reports(9), "one\ntwo\n");
  EXPECT_EQ(process.take_reports(9), "");
}

}  // namespace
}  // namespace wavejit::simgpu::testing
