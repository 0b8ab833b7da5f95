// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What changes while a kernel runs: the host's allocations, and the time.
#include <atomic>
#include <chrono>
#include <string>
#include <thread>

#include "assembled.h"
#include "gtest/gtest.h"

namespace wavejit::simgpu::testing {
namespace {

// The kernel waits for an address, and stores 42 there and 8 MiB behind it.
constexpr const char* store_where_told = R"(
  s_load_dwordx2 s[6:7], s[0:1], 0x0
  v_mov_b32 v1, 0
  s_waitcnt lgkmcnt(0)
0:
  s_sleep 1
  global_load_dwordx2 v[2:3], v1, s[6:7] sc0 sc1
  s_waitcnt vmcnt(0)
  v_readfirstlane_b32 s8, v2
  v_readfirstlane_b32 s9, v3
  s_cmp_eq_u64 s[8:9], 0
  s_cbranch_scc1 0b
  v_mov_b32 v4, 42
  v_mov_b32 v5, 0x800000
  global_store_dword v1, v4, s[8:9]
  global_store_dword v5, v4, s[8:9])";

void* fresh_memory(std::size_t bytes) { return DeviceMemory::instance().allocate(bytes, MemoryKind::device, 0); }

TEST(Running, MemoryThatTheHostAllocatedMeanwhileIsThere) {
  const Assembled kernel(store_where_told);
  // Twice: one allocation alone, and one behind others that came and went meanwhile.
  for (const int others : {0, 3}) {
    Buffer<std::uint64_t> box(1, 0);
    Status status;
    std::thread running([&] { status = kernel.run({box.address()}, {1, 1, 1}, {1, 1, 1}); });
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // it runs by now
    for (int i = 0; i < others; ++i) DeviceMemory::instance().free(fresh_memory(64));
    constexpr std::size_t bytes = 16U << 20;
    auto* const words = static_cast<std::uint32_t*>(fresh_memory(bytes));
    std::atomic_ref(box[0]).store(reinterpret_cast<std::uint64_t>(words));
    running.join();
    ASSERT_TRUE(status.ok()) << status.text;
    EXPECT_EQ(words[0], 42U);
    EXPECT_EQ(words[0x800000 / 4], 42U);
    DeviceMemory::instance().free(words);
  }
}

TEST(Running, WhatIsNobodysMemoryIsStillRefused) {
  const Assembled kernel(store_where_told);
  Buffer<std::uint64_t> box(1, 0);
  Status status;
  std::thread running([&] { status = kernel.run({box.address()}, {1, 1, 1}, {1, 1, 1}); });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  auto* const words = static_cast<std::uint32_t*>(fresh_memory(64));  // and 8 MiB behind it is nothing
  std::atomic_ref(box[0]).store(reinterpret_cast<std::uint64_t>(words));
  running.join();
  EXPECT_EQ(status.code, hip_error_illegal_address) << status.text;
  EXPECT_EQ(words[0], 42U);
  DeviceMemory::instance().free(words);
}

// 50 times 127 units of 64 cycles, and two instructions or so a turn.
constexpr std::uint64_t asleep = 50ULL * 127 * 64;

std::uint64_t cycles_asleep(const KernelSource& source, Arrival arrival) {
  const Assembled kernel(source);
  Buffer<std::uint64_t> cycles(1, 0);
  const ScopedSettings scope;
  Settings settings = scope.before();
  settings.arrival = arrival;
  scope.set(settings);
  const Status status = kernel.run({cycles.address()}, {1, 1, 1}, {1, 1, 1});
  EXPECT_TRUE(status.ok()) << status.text;
  return cycles[0];
}

TEST(Running, SleepTakesItsTimeOnTheClock) {
  const KernelSource cdna{.body = R"(
  s_load_dwordx2 s[6:7], s[0:1], 0x0
  s_waitcnt lgkmcnt(0)
  s_mov_b32 s8, 50
  s_memtime s[10:11]
0:
  s_sleep 127
  s_sub_u32 s8, s8, 1
  s_cmp_lg_u32 s8, 0
  s_cbranch_scc1 0b
  s_memtime s[12:13]
  s_waitcnt lgkmcnt(0)
  s_sub_u32 s12, s12, s10
  s_subb_u32 s13, s13, s11
  v_mov_b32 v1, 0
  v_mov_b32 v2, s12
  v_mov_b32 v3, s13
  global_store_dwordx2 v1, v[2:3], s[6:7])"};
  // A clock says what it shows when it is read, however late that arrives.
  const std::uint64_t early = cycles_asleep(cdna, Arrival::early);
  EXPECT_GE(early, asleep);
  EXPECT_LT(early, asleep + 2000);
  EXPECT_EQ(cycles_asleep(cdna, Arrival::late), early);
  EXPECT_EQ(cycles_asleep(cdna, Arrival::random), early);
  EXPECT_EQ(cycles_asleep(cdna, Arrival::timed), early);
  const KernelSource rdna4{.body = R"(
  s_load_b64 s[6:7], s[0:1], 0x0
  s_mov_b32 s8, 50
  s_movk_i32 s14, 127
  s_wait_kmcnt 0x0
  s_getreg_b32 s10, hwreg(HW_REG_SHADER_CYCLES_LO)
0:
  s_sleep_var s14
  s_sub_co_u32 s8, s8, 2
  s_sleep 127
  s_cmp_lg_u32 s8, 0
  s_cbranch_scc1 0b
  s_getreg_b32 s12, hwreg(HW_REG_SHADER_CYCLES_LO)
  s_sub_co_u32 s12, s12, s10
  v_mov_b32 v1, 0
  v_mov_b32 v2, s12
  v_mov_b32 v3, 0
  global_store_b64 v1, v[2:3], s[6:7])",
                           .target = "gfx1201"};
  for (const Arrival arrival : {Arrival::early, Arrival::late}) {
    EXPECT_GE(cycles_asleep(rdna4, arrival), asleep);
    EXPECT_LT(cycles_asleep(rdna4, arrival), asleep + 2000);
  }
}

}  // namespace
}  // namespace wavejit::simgpu::testing
