// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Checks whose rules are those of every target, on kernels of RDNA4: each finds its fault, and is silent without it.
// What RDNA4 has of its own is in rdna4_test.cpp.
#include <string>

#include "checked.h"

namespace wavejit::simgpu::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Memory in s[6:7], the second argument in s8. v1: 4 times the work-item's number; v2: the same of the other of two
// waves.
constexpr const char* begin = R"(
  s_load_b128 s[12:15], s[0:1], 0x0
  v_and_b32 v1, 0x3ff, v0
  v_lshlrev_b32 v1, 2, v1
  v_xor_b32 v2, 0x80, v1
  s_wait_kmcnt 0x0
  s_mov_b32 s6, s12
  s_mov_b32 s7, s13
  s_mov_b32 s8, s14
)";

Assembled kernel(const std::string& body) {
  return Assembled(KernelSource{.body = begin + body, .target = "gfx1201", .kernarg_bytes = 16, .lds_bytes = 1024});
}

constexpr CheckedRun one_wave{.threads = 32};
constexpr CheckedRun two_waves{.threads = 64};

TEST(Rdna4Bounds, AnotherAllocationIsReported) {
  for (const std::string access :
       {"global_store_b32 v1, v1, s[6:7]", "global_load_b32 v3, v1, s[6:7]\ns_wait_loadcnt 0x0",
        "s_mov_b32 s10, -1\ns_mov_b32 s11, 0x31004000\ns_mov_b32 s8, s6\ns_mov_b32 s9, s7\n"
        "buffer_load_b32 v3, v1, s[8:11], null offen\ns_wait_loadcnt 0x0"}) {
    SCOPED_TRACE(access);
    const Assembled strays = kernel("v_add_nc_u32 v1, s8, v1\n" + access);
    Buffer<std::uint32_t> first(64);
    Buffer<std::uint32_t> second(64);
    const Checked checked = run_checked(strays, {first.address(), second.address() - first.address()}, one_wave);
    ASSERT_THAT(checked.names(), ElementsAre("bounds"));
    EXPECT_THAT(checked.text(), HasSubstr("from the base"));
    EXPECT_THAT(run_checked(strays, {first.address(), 128}, one_wave).findings, IsEmpty());
  }
}

TEST(Rdna4Bounds, LdsThatTheWorkgroupDidNotAskFor) {
  Buffer<std::uint32_t> memory(64);
  const CheckedRun how{.checks = static_cast<std::uint32_t>(Check::bounds), .threads = 32};
  const Checked checked = run_checked(kernel("ds_store_b32 v1, v1 offset:1020"), {memory.address(), 0}, how);
  ASSERT_THAT(checked.names(), ElementsAre("bounds"));
  EXPECT_THAT(checked.text(), HasSubstr("the workgroup has 1024 bytes of LDS"));
  EXPECT_THAT(run_checked(kernel("ds_store_b32 v1, v1 offset:896"), {memory.address(), 0}, how).findings, IsEmpty());
}

// The product has all lanes whatever EXEC says, and who wrote the mask may have meant less.
TEST(Rdna4Exec, MatrixInstructionsWithLanesOff) {
  const std::string product = "v_wmma_f32_16x16x16_f16 v[16:23], v[8:11], v[8:11], 0";
  Buffer<std::uint32_t> memory(64);
  const CheckedRun how{.checks = static_cast<std::uint32_t>(Check::exec), .threads = 32};
  const Checked checked = run_checked(kernel("s_mov_b32 exec_lo, 0xffff\n" + product), {memory.address(), 0}, how);
  ASSERT_THAT(checked.names(), ElementsAre("exec"));
  EXPECT_THAT(checked.text(), HasSubstr("EXEC is 0xffff"));
  EXPECT_EQ(checked.findings[0].lane, 16);
  EXPECT_THAT(run_checked(kernel(product), {memory.address(), 0}, how).findings, IsEmpty());
}

TEST(Rdna4Barriers, AWaveThatEndsWhileTheOthersWait) {
  const auto leaves = [](const std::string& when) {
    return kernel("v_readfirstlane_b32 s9, v1\ns_cmp_lg_u32 s9, " + when +
                  "\ns_cbranch_scc0 over\ns_barrier_signal -1\ns_barrier_wait -1\nover:");
  };
  Buffer<std::uint32_t> memory(64);
  const CheckedRun how{.checks = static_cast<std::uint32_t>(Check::barriers), .threads = 96};
  const Checked checked = run_checked(leaves("128"), {memory.address(), 0}, how);
  ASSERT_THAT(checked.names(), ElementsAre("barriers"));
  EXPECT_THAT(checked.findings[0].text, HasSubstr("wave 1 ended without reaching this barrier"));
  EXPECT_THAT(run_checked(leaves("1"), {memory.address(), 0}, how).findings, IsEmpty());
}

TEST(Rdna4Uniform, TheFirstLaneSpeaksForOthersThatDiffer) {
  Buffer<std::uint32_t> memory(64);
  const CheckedRun how{.checks = static_cast<std::uint32_t>(Check::uniform), .threads = 32};
  const Checked checked = run_checked(kernel("v_readfirstlane_b32 s9, v1"), {memory.address(), 0}, how);
  ASSERT_THAT(checked.names(), ElementsAre("uniform"));
  EXPECT_THAT(checked.text(), HasSubstr("lane 0 speaks for all and holds 0x0; lane 1 holds 0x4"));
  EXPECT_THAT(run_checked(kernel("v_mov_b32 v3, s8\nv_readfirstlane_b32 s9, v3"), {memory.address(), 0}, how).findings,
              IsEmpty());
}

// Stores count apart from loads: a barrier orders what was waited for by storecnt.
TEST(Rdna4Races, ABarrierOrdersStoresThatWereWaitedFor) {
  const auto exchange = [](const std::string& wait) {
    return kernel("global_store_b32 v1, v1, s[6:7]\n" + wait +
                  "\ns_barrier_signal -1\ns_barrier_wait -1\nglobal_load_b32 v3, v2, s[6:7]\ns_wait_loadcnt 0x0");
  };
  expect_race(exchange("s_wait_storecnt 0x0"), two_waves, false);
  expect_race(exchange("s_wait_loadcnt 0x0"), two_waves, true,
              "with no barrier in between that it was waited for before");
}

TEST(Rdna4Races, TwoWorkgroupsWriteTheSamePlace) {
  expect_race(kernel("v_add_nc_u32 v2, ttmp9, v1\nglobal_store_b32 v1, v2, s[6:7]"),
              {.workgroups = {2, 1, 1}, .threads = 32}, true);
  expect_race(kernel("global_store_b32 v1, v1, s[6:7]"), {.workgroups = {2, 1, 1}, .threads = 32}, false);
  expect_race(kernel("v_lshl_add_u32 v1, ttmp9, 7, v1\nglobal_store_b32 v1, v1, s[6:7]"),
              {.workgroups = {2, 1, 1}, .threads = 32}, false);
}

TEST(Rdna4Uninitialised, LdsThatNobodyWrote) {
  Buffer<std::uint32_t> memory(64);
  for (const bool right : {true, false}) {
    const Checked checked = run_checked(kernel(std::string(right ? "ds_store_b32 v1, v1\ns_wait_dscnt 0x0\n" : "") +
                                               "ds_load_b32 v3, v1\ns_wait_dscnt 0x0\nglobal_store_b32 v1, v3, s[6:7]"),
                                        {memory.address(), 0}, one_wave);
    if (right) {
      EXPECT_THAT(checked.findings, IsEmpty()) << checked.text();
    } else {
      EXPECT_THAT(checked.names(), ElementsAre("uninitialised"));
    }
  }
}

}  // namespace
}  // namespace wavejit::simgpu::testing
