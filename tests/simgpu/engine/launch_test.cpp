// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How waves start, in which order they run, and how they meet.
#include <algorithm>
#include <format>
#include <numeric>
#include <set>

#include "assembled.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "simgpu/machine/launch/observer.h"
#include "simgpu/machine/wave/wave.h"

namespace wavejit::simgpu::testing {
namespace {

using ::testing::HasSubstr;

// Stores v1 of every work-item at out[linear work-item], for workgroups of x·y·z work-items with packed ids in v0.
constexpr const char* store_by_wave = R"(
  s_load_dwordx2 s[6:7], s[0:1], 0x0
  v_mbcnt_lo_u32_b32 v10, -1, 0
  v_mbcnt_hi_u32_b32 v10, -1, v10
  v_lshlrev_b32 v11, 2, v10
  s_waitcnt lgkmcnt(0)
  global_store_dword v11, v1, s[6:7]
)";

TEST(Launch, WorkItemIdsArePackedInV0) {
  const Assembled kernel(KernelSource{.body = std::string("v_mov_b32 v1, v0\n") + store_by_wave,
                                      .directives = ".amdhsa_system_vgpr_workitem_id 2"});
  Buffer<std::uint32_t> out(64, 0xdead);
  ASSERT_TRUE(kernel.run({out.address()}, {1, 1, 1}, {5, 3, 2}).ok());
  for (std::uint32_t i = 0; i < 64; ++i) {
    const std::uint32_t expected = i < 30 ? (i % 5) | ((i / 5 % 3) << 10) | ((i / 15) << 20) : 0xdead;
    EXPECT_EQ(out[i], expected) << i;
  }
}

TEST(Launch, OnlyXWithoutFurtherIds) {
  const Assembled kernel(KernelSource{.body = std::string("v_mov_b32 v1, v0\n") + store_by_wave,
                                      .directives = ".amdhsa_system_vgpr_workitem_id 0"});
  Buffer<std::uint32_t> out(64);
  ASSERT_TRUE(kernel.run({out.address()}, {1, 1, 1}, {8, 8, 1}).ok());
  for (std::uint32_t i = 0; i < 64; ++i) EXPECT_EQ(out[i], i % 8);
}

TEST(Launch, WorkgroupIdsFollowTheUserRegisters) {
  const Assembled kernel(R"(
  s_load_dwordx2 s[6:7], s[0:1], 0x0
  s_mul_i32 s8, s4, 3
  s_add_u32 s8, s8, s3
  s_mul_i32 s8, s8, 5
  s_add_u32 s8, s8, s2
  s_lshl_b32 s8, s8, 2
  s_lshl_b32 s9, s3, 8
  s_or_b32 s9, s9, s2
  s_lshl_b32 s10, s4, 16
  s_or_b32 s9, s9, s10
  v_mov_b32 v1, s8
  v_mov_b32 v2, s9
  s_waitcnt lgkmcnt(0)
  global_store_dword v1, v2, s[6:7])");
  Buffer<std::uint32_t> out(30, ~0u);
  ASSERT_TRUE(kernel.run({out.address()}, {5, 3, 2}, {1, 1, 1}).ok());
  for (std::uint32_t i = 0; i < 30; ++i) EXPECT_EQ(out[i], (i % 5) | ((i / 5 % 3) << 8) | ((i / 15) << 16));
}

TEST(Launch, DispatchPacketSaysTheSizes) {
  const Assembled kernel(KernelSource{.body = R"(
  s_load_dwordx2 s[20:21], s[2:3], 0x0
  s_load_dwordx4 s[8:11], s[0:1], 0x4
  s_load_dword s12, s[0:1], 0xc
  s_waitcnt lgkmcnt(0)
  v_mov_b32 v12, s8
  v_mov_b32 v13, s9
  v_mov_b32 v14, s10
  v_mov_b32 v15, s12
  v_mov_b32 v16, 0
  global_store_dwordx4 v16, v[12:15], s[20:21])",
                                      .directives = ".amdhsa_user_sgpr_dispatch_ptr 1"});
  Buffer<std::uint32_t> out(4);
  ASSERT_TRUE(kernel.run({out.address()}, {7, 2, 1}, {32, 4, 2}).ok());
  EXPECT_EQ(out[0], 32u | (4u << 16));
  EXPECT_EQ(out[1] & 0xffff, 2u);
  EXPECT_EQ(out[2], 7u * 32);
  EXPECT_EQ(out[3], 7u * 32);
}

TEST(Launch, PreloadedArgumentsSkipThePrologue) {
  // Old firmware starts at the kernel's first byte, new firmware 256 bytes later with the arguments in s2 and up.
  const Assembled kernel(KernelSource{.body = R"(
  s_trap 2
  .p2align 8
  v_mov_b32 v2, s4
  v_mov_b32 v3, s5
  v_mov_b32 v4, 0
  global_store_dwordx2 v4, v[2:3], s[2:3])",
                                      .kernarg_bytes = 16,
                                      .directives = ".amdhsa_user_sgpr_kernarg_preload_length 4\n"
                                                    ".amdhsa_user_sgpr_kernarg_preload_offset 0\n"});
  Buffer<std::uint64_t> out(1);
  ASSERT_TRUE(kernel.run({out.address(), 0x1122334455667788}).ok());
  EXPECT_EQ(out[0], 0x1122334455667788u);
}

// As LLVM loads a pointer and a number: the fourth dword lies behind the last argument.
TEST(Launch, TheKernargSegmentCanBeReadInUnitsOf16Bytes) {
  const Assembled kernel(KernelSource{.body = R"(
  s_load_dwordx4 s[8:11], s[0:1], 0x0
  v_mov_b32 v4, 0
  s_waitcnt lgkmcnt(0)
  v_mov_b32 v2, s10
  global_store_dword v4, v2, s[8:9])",
                                      .kernarg_bytes = 12,
                                      .arguments = "      - {.offset: 0, .size: 8, .value_kind: global_buffer}\n"
                                                   "      - {.offset: 8, .size: 4, .value_kind: by_value}\n"});
  Buffer<std::uint32_t> out(1);
  const Status status = kernel.run({out.address(), 77});
  EXPECT_TRUE(status.ok()) << status.text;
  EXPECT_EQ(out[0], 77U);
}

TEST(Launch, HiddenArgumentsAreFilledIn) {
  const Assembled kernel(KernelSource{.body = R"(
  s_load_dwordx2 s[6:7], s[0:1], 0x0
  s_load_dwordx4 s[8:11], s[0:1], 0x8
  s_waitcnt lgkmcnt(0)
  v_mov_b32 v12, s8
  v_mov_b32 v13, s9
  v_mov_b32 v14, s10
  v_mov_b32 v15, s11
  v_mov_b32 v16, 0
  global_store_dwordx4 v16, v[12:15], s[6:7])",
                                      .kernarg_bytes = 24,
                                      .arguments =
                                          "      - {.offset: 0, .size: 8, .value_kind: global_buffer}\n"
                                          "      - {.offset: 8, .size: 4, .value_kind: hidden_block_count_x}\n"
                                          "      - {.offset: 12, .size: 4, .value_kind: hidden_block_count_y}\n"
                                          "      - {.offset: 16, .size: 2, .value_kind: hidden_group_size_x}\n"
                                          "      - {.offset: 18, .size: 2, .value_kind: hidden_grid_dims}\n"
                                          "      - {.offset: 20, .size: 4, .value_kind: hidden_dynamic_lds_size}\n"});
  Buffer<std::uint32_t> out(4);
  ASSERT_TRUE(kernel.run({out.address()}, {9, 4, 1}, {64, 1, 1}, 1024).ok());
  EXPECT_THAT(out.copy(), ::testing::ElementsAre(9u, 4u, 64u | (3u << 16), 1024u));
}

std::vector<std::uint32_t> noise(std::uint64_t seed) {
  const ScopedSettings scope;
  Settings settings = scope.before();
  settings.seed = seed;
  scope.set(settings);
  const Assembled kernel(KernelSource{.body = std::string(R"(
  v_mov_b32 v12, 0
  ds_read_b32 v13, v12
  v_xor_b32 v1, v7, v13
  v_xor_b32 v1, s50, v1
)") + store_by_wave,
                                      .lds_bytes = 64});
  Buffer<std::uint32_t> out(64);
  EXPECT_TRUE(kernel.run({out.address()}).ok());
  return out.copy();
}

TEST(Launch, RegistersAndLdsStartAsSeededNoise) {
  const std::vector<std::uint32_t> first = noise(7);
  EXPECT_EQ(first, noise(7));
  EXPECT_NE(first, noise(8));
  EXPECT_GT(std::set<std::uint32_t>(first.begin(), first.end()).size(), 60u);
}

// Every wave adds 1 to a counter in LDS and stores what it found.
constexpr const char* arrival_order = R"(
  s_load_dwordx2 s[6:7], s[0:1], 0x0
  v_lshrrev_b32 v2, 6, v0
  v_readfirstlane_b32 s8, v2
  v_mov_b32 v3, 0
  s_cmp_lg_u32 s8, 0
  v_mov_b32 v4, 1
  s_mov_b64 s[10:11], exec
  s_mov_b64 exec, 1
  ds_add_rtn_u32 v5, v3, v4
  v_lshlrev_b32 v6, 2, v2
  s_waitcnt lgkmcnt(0)
  global_store_dword v6, v5, s[6:7]
)";

std::vector<std::uint32_t> arrivals(Schedule schedule, std::uint64_t seed) {
  const ScopedSettings scope;
  Settings settings = scope.before();
  settings.schedule = schedule;
  settings.seed = seed;
  scope.set(settings);
  const Assembled kernel(KernelSource{.body = arrival_order, .lds_bytes = 16});
  Buffer<std::uint32_t> out(8);
  EXPECT_TRUE(kernel.run({out.address()}, {1, 1, 1}, {512, 1, 1}).ok());
  std::vector<std::uint32_t> order = out.copy();
  const std::uint32_t first = *std::ranges::min_element(order);  // LDS started as noise
  for (std::uint32_t& place : order) place -= first;
  return order;
}

TEST(Schedule, WavesArriveAsAskedFor) {
  EXPECT_THAT(arrivals(Schedule::in_order, 1), ::testing::ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  EXPECT_THAT(arrivals(Schedule::reverse, 1), ::testing::ElementsAre(7, 6, 5, 4, 3, 2, 1, 0));
  const std::vector<std::uint32_t> random = arrivals(Schedule::random, 1);
  EXPECT_EQ(random, arrivals(Schedule::random, 1));
  EXPECT_THAT(random, ::testing::UnorderedElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  std::set<std::vector<std::uint32_t>> orders;
  for (std::uint64_t seed = 1; seed <= 5; ++seed) orders.insert(arrivals(Schedule::random, seed));
  EXPECT_GT(orders.size(), 3u);
}

// Wave w writes to LDS, meets the others, reads what wave w+1 wrote. Twice.
TEST(Schedule, BarriersOrderWavesUnderEverySchedule) {
  const Assembled kernel(KernelSource{.body = R"(
  s_load_dwordx2 s[6:7], s[0:1], 0x0
  v_lshlrev_b32 v1, 2, v0
  v_add_u32 v2, 0x100, v1
  v_and_b32 v2, 0x7ff, v2
  s_movk_i32 s8, 2
  v_mov_b32 v3, v0
loop:
  ds_write_b32 v1, v3
  s_waitcnt lgkmcnt(0)
  s_barrier
  ds_read_b32 v3, v2
  s_waitcnt lgkmcnt(0)
  s_barrier
  s_sub_u32 s8, s8, 1
  s_cmp_lg_u32 s8, 0
  s_cbranch_scc1 loop
  global_store_dword v1, v3, s[6:7])",
                                      .lds_bytes = 2048});
  for (const Schedule schedule : {Schedule::in_order, Schedule::reverse, Schedule::random}) {
    for (std::uint64_t seed = 1; seed <= 4; ++seed) {
      const ScopedSettings scope;
      Settings settings = scope.before();
      settings.schedule = schedule;
      settings.seed = seed;
      scope.set(settings);
      Buffer<std::uint32_t> out(512);
      ASSERT_TRUE(kernel.run({out.address()}, {1, 1, 1}, {512, 1, 1}).ok());
      for (std::uint32_t i = 0; i < 512; ++i) ASSERT_EQ(out[i], (i + 128) % 512);
    }
  }
}

TEST(Schedule, WavesThatEndedAreNotWaitedFor) {
  const Assembled kernel(KernelSource{.body = R"(
  s_load_dwordx2 s[6:7], s[0:1], 0x0
  v_lshrrev_b32 v2, 6, v0
  v_readfirstlane_b32 s8, v2
  s_cmp_lt_u32 s8, 2
  s_cbranch_scc1 early
  s_barrier
  v_lshlrev_b32 v1, 2, v0
  s_waitcnt lgkmcnt(0)
  global_store_dword v1, v0, s[6:7]
early:)"});
  Buffer<std::uint32_t> out(256, 0xffff);
  ASSERT_TRUE(kernel.run({out.address()}, {1, 1, 1}, {256, 1, 1}).ok());
  for (std::uint32_t i = 0; i < 256; ++i) EXPECT_EQ(out[i], i < 128 ? 0xffff : i);
}

// Wave 0 spins until wave 1 has set a flag in LDS: in order, wave 1 only runs when wave 0 gives way.
TEST(Schedule, ASpinningWaveGivesWay) {
  const Assembled kernel(KernelSource{.body = R"(
  v_mov_b32 v1, 0
  v_mov_b32 v2, 1
  v_lshrrev_b32 v3, 6, v0
  v_readfirstlane_b32 s8, v3
  s_cmp_lg_u32 s8, 0
  s_cbranch_scc1 set
  ds_write_b32 v1, v1
  s_barrier
spin:
  ds_read_b32 v4, v1
  s_waitcnt lgkmcnt(0)
  v_readfirstlane_b32 s9, v4
  s_cmp_eq_u32 s9, 0
  s_cbranch_scc1 spin
  s_endpgm
set:
  s_barrier
  ds_write_b32 v1, v2)",
                                      .lds_bytes = 16});
  EXPECT_TRUE(kernel.run({0}, {1, 1, 1}, {128, 1, 1}).ok());
}

TEST(Schedule, AnEndlessLoopIsAnErrorThatNamesTheWaves) {
  const ScopedSettings scope;
  Settings settings = scope.before();
  settings.instruction_limit = 10'000;
  scope.set(settings);
  const Assembled kernel(KernelSource{.body = R"(
  v_lshrrev_b32 v3, 6, v0
  v_readfirstlane_b32 s8, v3
  s_cmp_eq_u32 s8, 0
  s_cbranch_scc1 wait
spin:
  s_branch spin
wait:
  s_barrier)"});
  const Status status = kernel.run({0}, {1, 1, 1}, {128, 1, 1});
  EXPECT_EQ(status.code, hip_error_launch_failure);
  EXPECT_THAT(status.text, HasSubstr("no end after 10000 instructions"));
  EXPECT_THAT(status.text, HasSubstr("wave 0 at k+"));
  EXPECT_THAT(status.text, HasSubstr("waiting at the barrier"));
  EXPECT_THAT(status.text, HasSubstr("wave 1 at k+"));
  EXPECT_THAT(status.text, HasSubstr("s_branch"));
}

TEST(Launch, CallsAndReturns) {
  const Assembled kernel(KernelSource{.body = R"(
  s_load_dwordx2 s[6:7], s[0:1], 0x0
  s_getpc_b64 s[8:9]
  s_add_u32 s8, s8, triple@rel32@lo+4
  s_addc_u32 s9, s9, triple@rel32@hi+12
  v_mov_b32 v1, 14
  s_swappc_b64 s[30:31], s[8:9]
  s_swappc_b64 s[30:31], s[8:9]
  v_mov_b32 v2, 0
  s_waitcnt lgkmcnt(0)
  global_store_dword v2, v1, s[6:7])",
                                      .after = R"(
.Lend0:
.size k, .Lend0-k
.p2align 6
.type triple,@function
triple:
  v_mul_u32_u24 v1, 3, v1
  s_setpc_b64 s[30:31]
.Lend1:
.size triple, .Lend1-triple
)"});
  Buffer<std::uint32_t> out(1);
  const Status status = kernel.run({out.address()}, {1, 1, 1}, {1, 1, 1});
  ASSERT_TRUE(status.ok()) << status.text;
  EXPECT_EQ(out[0], 14u * 9);
}

TEST(Launch, RelativeVectorRegisters) {
  const Assembled kernel(R"(
  s_load_dwordx2 s[6:7], s[0:1], 0x0
  v_mov_b32 v20, 100
  v_mov_b32 v21, 101
  v_mov_b32 v22, 102
  s_mov_b32 s8, 2
  s_set_gpr_idx_on s8, gpr_idx(SRC0)
  v_mov_b32 v1, v20
  s_set_gpr_idx_off
  s_mov_b32 s8, 1
  s_set_gpr_idx_on s8, gpr_idx(DST)
  v_mov_b32 v2, v21
  s_set_gpr_idx_off
  v_mov_b32 v4, 0
  s_waitcnt lgkmcnt(0)
  global_store_dword v4, v1, s[6:7]
  global_store_dword v4, v3, s[6:7] offset:4)");
  Buffer<std::uint32_t> out(2);
  ASSERT_TRUE(kernel.run({out.address()}).ok());
  EXPECT_EQ(out[0], 102u);
  EXPECT_EQ(out[1], 101u);
}

TEST(Launch, ResultsDoNotDependOnTheNumberOfThreads) {
  const Assembled kernel(KernelSource{.body = R"(
  s_load_dwordx2 s[6:7], s[0:1], 0x0
  s_lshl_b32 s8, s2, 8
  v_lshl_add_u32 v1, v0, 2, s8
  v_mul_lo_u32 v2, v7, v1
  s_waitcnt lgkmcnt(0)
  global_store_dword v1, v2, s[6:7])"});
  std::vector<std::vector<std::uint32_t>> results;
  for (const std::uint32_t threads : {1u, 2u, 7u}) {
    const ScopedSettings scope;
    Settings settings = scope.before();
    settings.threads = threads;
    scope.set(settings);
    Buffer<std::uint32_t> out(64 * 100);
    ASSERT_TRUE(kernel.run({out.address()}, {100, 1, 1}).ok());
    results.push_back(out.copy());
  }
  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(results[0], results[2]);
}

TEST(Launch, OnlyChosenWorkgroupsRun) {
  const Assembled kernel(R"(
  s_load_dwordx2 s[6:7], s[0:1], 0x0
  s_lshl_b32 s8, s2, 2
  v_mov_b32 v1, s8
  v_mov_b32 v2, 1
  s_waitcnt lgkmcnt(0)
  global_store_dword v1, v2, s[6:7])");
  const ScopedSettings scope;
  Settings settings = scope.before();
  settings.workgroup_first = 1;
  settings.workgroup_step = 3;
  settings.workgroup_count = 2;
  scope.set(settings);
  Buffer<std::uint32_t> out(10);
  ASSERT_TRUE(kernel.run({out.address()}, {10, 1, 1}).ok());
  EXPECT_THAT(out.copy(), ::testing::ElementsAre(0, 1, 0, 0, 1, 0, 0, 0, 0, 0));
}

TEST(Launch, RefusesWhatTheDeviceCannotRun) {
  const Assembled kernel(KernelSource{.body = "", .lds_bytes = 1024, .max_threads = 256});
  EXPECT_EQ(kernel.run({0}, {0, 1, 1}).code, hip_error_invalid_configuration);
  EXPECT_EQ(kernel.run({0}, {1, 1, 1}, {257, 1, 1}).code, hip_error_invalid_configuration);
  EXPECT_EQ(kernel.run({0}, {1, 1, 1}, {64, 1, 1}, 160 * 1024).code, hip_error_invalid_value);
  EXPECT_EQ(kernel.run({}, {1, 1, 1}).code, hip_error_invalid_value);
  EXPECT_TRUE(kernel.run({0}, {1, 1, 1}, {256, 1, 1}, 159 * 1024).ok());
}

// Takes down what every wave is about to run, and v0 of its first lane.
class Listener : public Observer {
 public:
  struct Seen {
    unsigned wave;
    std::string mnemonic;
    std::uint32_t v1;
    bool operator==(const Seen&) const = default;
  };
  void before(const Wave& wave, const Instruction& instruction) override {
    seen.push_back({wave.index, std::string(instruction.mnemonic), wave.vgpr[1][0]});
  }
  std::vector<Seen> seen;
};

TEST(Launch, AnObserverSeesEveryInstructionBeforeItRuns) {
  const Assembled kernel(R"(
  v_mov_b32 v1, 7
  s_barrier
  v_mov_b32 v1, 9)");
  Listener listener;
  const std::array<std::uint64_t, 1> arguments = {0};
  ASSERT_TRUE(kernel.device()
                  .launch({.kernel = &kernel.kernel(),
                           .workgroup_size = {128, 1, 1},
                           .kernarg = std::as_bytes(std::span(arguments)),
                           .observer = &listener})
                  .ok());
  ASSERT_EQ(listener.seen.size(), 8U);
  EXPECT_EQ(listener.seen[1], (Listener::Seen{0, "s_barrier", 7}));
  EXPECT_EQ(listener.seen[3], (Listener::Seen{1, "s_barrier", 7}));
  EXPECT_EQ(listener.seen[4], (Listener::Seen{0, "v_mov_b32", 7}));
  EXPECT_EQ(listener.seen[5], (Listener::Seen{0, "s_endpgm", 9}));
  EXPECT_EQ(listener.seen[7], (Listener::Seen{1, "s_endpgm", 9}));
}

}  // namespace
}  // namespace wavejit::simgpu::testing
