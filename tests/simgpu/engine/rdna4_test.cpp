// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Kernels of RDNA4: how its waves start, barriers in two parts, waves of 64 lanes, transposing loads.
#include "assembled.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "simgpu/checkers/clock/launch_clock.h"
#include "simgpu/process/process.h"

namespace wavejit::simgpu::testing {
namespace {

using ::testing::HasSubstr;

KernelSource of(const std::string& body, const std::string& directives = "") {
  return {.body = body, .target = "gfx1201", .kernarg_bytes = 16, .lds_bytes = 1024, .directives = directives};
}

// What every kernel here begins with: the buffer in s[6:7], the thread's x in v1.
const std::string begin = R"(
  s_load_b64 s[6:7], s[0:1], 0x0
  v_and_b32 v1, 0x3ff, v0
  s_wait_kmcnt 0x0
)";

TEST(Rdna4Launch, PlacesAreInTrapTemporariesAndIdsInOneRegister) {
  const Assembled kernel(of(begin + R"(
  s_and_b32 s8, ttmp7, 0xffff
  s_lshr_b32 s9, ttmp7, 16
  v_bfe_u32 v2, v0, 10, 10
  v_bfe_u32 v3, v0, 20, 10
  s_lshl_b32 s10, ttmp9, 16
  s_lshl_b32 s8, s8, 20
  s_lshl_b32 s9, s9, 24
  s_or_b32 s8, s8, s9
  s_or_b32 s8, s8, s10
  v_lshl_or_b32 v4, v2, 4, v1
  v_lshl_or_b32 v4, v3, 8, v4
  v_or_b32 v4, s8, v4
  v_mov_b32 v5, 0
  v_cmp_eq_u32 vcc_lo, 2, v1
  s_and_saveexec_b32 s11, vcc_lo
  s_mul_i32 s12, ttmp9, 4
  v_mov_b32 v5, s12
  global_store_b32 v5, v4, s[6:7])",
                            ".amdhsa_system_vgpr_workitem_id 2"));
  Buffer<std::uint32_t> memory(4);
  ASSERT_TRUE(kernel.run({memory.address(), 0}, {2, 1, 1}, {4, 1, 1}).ok());
  EXPECT_EQ(memory[0], 2U);
  EXPECT_EQ(memory[1], (1U << 16) | 2U);
}

// Half of a workgroup stores, all pass, the other half reads.
const std::string exchange = begin + R"(
  v_lshlrev_b32 v2, 2, v1
  ds_store_b32 v2, v1
  s_wait_dscnt 0x0
  s_barrier_signal -1
  v_xor_b32 v3, 0x7f, v1
  v_lshlrev_b32 v3, 2, v3
  s_barrier_wait -1
  ds_load_b32 v4, v3
  s_wait_dscnt 0x0
  global_store_b32 v2, v4, s[6:7])";

TEST(Rdna4Barrier, HasTwoParts) {
  const ScopedSettings scope;
  const Assembled kernel(of(exchange));
  for (const Schedule schedule : {Schedule::in_order, Schedule::reverse, Schedule::random}) {
    Settings settings = scope.before();
    settings.schedule = schedule;
    scope.set(settings);
    Buffer<std::uint32_t> memory(128);
    ASSERT_TRUE(kernel.run({memory.address(), 0}, {1, 1, 1}, {128, 1, 1}).ok());
    for (unsigned i = 0; i < 128; ++i) EXPECT_EQ(memory[i], 127 - i);
  }
}

// A wave that has gone on may signal the next one before others come to this one's end.
TEST(Rdna4Barrier, ManyInARow) {
  const Assembled kernel(of(begin + R"(
  v_lshlrev_b32 v2, 2, v1
  v_add_nc_u32 v3, 4, v2
  v_and_b32 v3, 0x1ff, v3
  v_mov_b32 v4, v1
  s_mov_b32 s8, 20
.Lagain:
  ds_store_b32 v2, v4
  s_wait_dscnt 0x0
  s_barrier_signal -1
  s_barrier_wait -1
  ds_load_b32 v4, v3
  s_wait_dscnt 0x0
  s_barrier_signal -1
  s_sub_co_i32 s8, s8, 1
  s_cmp_lg_u32 s8, 0
  s_barrier_wait -1
  s_cbranch_scc1 .Lagain
  global_store_b32 v2, v4, s[6:7])"));
  Buffer<std::uint32_t> memory(128);
  ASSERT_TRUE(kernel.run({memory.address(), 0}, {1, 1, 1}, {128, 1, 1}).ok());
  for (unsigned i = 0; i < 128; ++i) EXPECT_EQ(memory[i], (i + 20) % 128);
}

TEST(Rdna4Barrier, AWaitThatNobodySignalledIsAFault) {
  const Assembled kernel(of(begin + "s_barrier_wait -1"));
  Buffer<std::uint32_t> memory(1);
  const Status status = kernel.run({memory.address(), 0}, {1, 1, 1}, {64, 1, 1});
  EXPECT_THAT(status.text, HasSubstr("waits at a barrier that it has not signalled"));
}

TEST(Rdna4Barrier, WavesThatEndedAreNotWaitedFor) {
  const Assembled kernel(of(begin + R"(
  v_cmp_gt_u32 vcc_lo, 32, v1
  s_cbranch_vccnz .Lgo
  s_endpgm
.Lgo:
  s_barrier_signal -1
  s_barrier_wait -1
  v_lshlrev_b32 v2, 2, v1
  global_store_b32 v2, v1, s[6:7])"));
  Buffer<std::uint32_t> memory(32, 99);
  ASSERT_TRUE(kernel.run({memory.address(), 0}, {1, 1, 1}, {96, 1, 1}).ok());
  EXPECT_EQ(memory[31], 31U);
}

TEST(Rdna4Launch, WavesOf64) {
  const Assembled kernel(of(begin + R"(
  v_mbcnt_lo_u32_b32 v2, -1, 0
  v_mbcnt_hi_u32_b32 v2, -1, v2
  v_cmp_lt_u32 vcc, 31, v2
  v_cndmask_b32 v3, v2, 0, vcc
  v_permlane64_b32 v4, v2
  v_lshl_or_b32 v3, v4, 8, v3
  v_lshlrev_b32 v5, 2, v1
  global_store_b32 v5, v3, s[6:7])",
                            ".amdhsa_wavefront_size32 0"));
  Buffer<std::uint32_t> memory(64);
  ASSERT_TRUE(kernel.run({memory.address(), 0}).ok());
  for (unsigned i = 0; i < 64; ++i) EXPECT_EQ(memory[i], ((i ^ 32) << 8) | (i > 31 ? 0 : i));
}

TEST(Rdna4Memory, LoadsTranspose) {
  // A matrix of 32 rows of 8 halves: lane L points at row L.
  const Assembled kernel(of(begin + R"(
  v_lshlrev_b32 v2, 4, v1
  global_load_tr_b128 v[4:7], v2, s[6:7]
  s_wait_loadcnt 0x0
  global_store_b128 v2, v[4:7], s[6:7])"));
  Buffer<std::uint16_t> memory(256);
  for (unsigned i = 0; i < 256; ++i) memory[i] = static_cast<std::uint16_t>(i);
  ASSERT_TRUE(kernel.run({memory.address(), 0}, {1, 1, 1}, {32, 1, 1}).ok());
  for (unsigned lane = 0; lane < 32; ++lane) {
    for (unsigned j = 0; j < 8; ++j) EXPECT_EQ(memory[(8 * lane) + j], (8 * ((lane & ~7U) + j)) + lane % 8);
  }
}

TEST(Rdna4Memory, HalvesAreKept) {
  const Assembled kernel(of(begin + R"(
  v_lshlrev_b32 v2, 2, v1
  v_mov_b32 v3, 0x11112222
  global_load_d16_hi_b16 v3, v2, s[6:7]
  s_wait_loadcnt 0x0
  global_load_d16_u8 v3, v2, s[6:7] offset:2
  s_wait_loadcnt 0x0
  s_load_u16 s8, s[6:7], 0x2
  s_load_b96 s[12:14], s[6:7], 0x0
  s_wait_kmcnt 0x0
  v_add_nc_u32 v3, s8, v3
  v_add_nc_u32 v3, s14, v3
  global_store_b32 v2, v3, s[6:7])"));
  Buffer<std::uint32_t> memory(32, 0x00045678);
  memory[2] = 0x00045679;
  ASSERT_TRUE(kernel.run({memory.address(), 0}, {1, 1, 1}, {32, 1, 1}).ok());
  EXPECT_EQ(memory[7], 0x56780004U + 4 + 0x00045679U);
}

TEST(Rdna4Memory, PartsOfTheLanesDoNotTranspose) {
  const Assembled kernel(of(begin + R"(
  v_lshlrev_b32 v2, 4, v1
  s_mov_b32 exec_lo, 7
  global_load_tr_b128 v[4:7], v2, s[6:7])"));
  Buffer<std::uint32_t> memory(128);
  const Status status = kernel.run({memory.address(), 0}, {1, 1, 1}, {32, 1, 1});
  EXPECT_THAT(status.text, HasSubstr("transposing loads need all lanes; EXEC is 0x7"));
}

TEST(Rdna4, SparseMatrixInstructionsAreRefusedByName) {
  const Assembled kernel(of(begin + "v_swmmac_f32_16x16x32_f16 v[8:15], v[16:19], v[20:27], v2"));
  Buffer<std::uint32_t> memory(1);
  const Status status = kernel.run({memory.address(), 0}, {1, 1, 1}, {32, 1, 1});
  EXPECT_THAT(status.text, HasSubstr("v_swmmac_f32_16x16x32_f16"));
  EXPECT_THAT(status.text, HasSubstr("does not know this instruction"));
}

TEST(Rdna4, TheClockRefusesByName) {
  clock::ClockLog& log = clock::ClockLog::instance();
  log.set_sample(1);
  const Assembled of_gfx1200(KernelSource{.body = begin, .target = "gfx1200", .kernarg_bytes = 16, .lds_bytes = 1024});
  Buffer<std::uint32_t> memory(1);
  EXPECT_TRUE(of_gfx1200.run({memory.address(), 0}).ok());
  log.set_sample(0);
  EXPECT_THAT(log.take(SIZE_MAX), HasSubstr("nothing is known about the timing of gfx1200"));
}

}  // namespace
}  // namespace wavejit::simgpu::testing
