// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The schedule `timed`: kernels that hold by time alone get what hardware would give them, and others what they always
// get.
#include "checked.h"

namespace wavejit::simgpu::testing {
namespace {

std::vector<std::uint32_t> run_in(const std::string& body, Schedule schedule, Arrival arrival,
                                  std::uint32_t threads = 128) {
  const Assembled kernel(KernelSource{.body = std::string(prologue) + body, .lds_bytes = 1024});
  Buffer<std::uint32_t> memory(512);
  for (std::uint32_t i = 0; i < 256; ++i) memory[i] = i;
  const ScopedSettings scope;
  Settings settings = scope.before();
  settings.schedule = schedule;
  settings.arrival = arrival;
  scope.set(settings);
  const Status status = kernel.run({memory.address()}, {1, 1, 1}, {threads, 1, 1});
  EXPECT_TRUE(status.ok()) << status.text;
  const auto all = memory.copy();
  return {all.begin() + 256, all.end()};
}

// Wave 0 fills 256 bytes of LDS by DMA, with words 0 to 63; after the barrier wave 1 reads them while wave 0 sends for
// words 64 to 127 into the same bytes.
constexpr const char* next_load_too_early = R"(
  v_readfirstlane_b32 s8, v0
  v_and_b32 v2, 0xfc, v1
  s_mov_b32 m0, 0
  s_cmp_lg_u32 s8, 0
  s_cbranch_scc1 .Lreads
  global_load_lds_dword v1, s[6:7]
  s_waitcnt vmcnt(0)
  s_barrier
  v_add_u32 v5, 256, v1
  global_load_lds_dword v5, s[6:7]
  s_waitcnt vmcnt(0)
  s_endpgm
.Lreads:
  s_barrier
  v_mov_b32 v4, 7
  v_mov_b32 v4, 8
  ds_read_b32 v3, v2
  s_waitcnt lgkmcnt(0)
  global_store_dword v2, v3, s[6:7] offset:1024)";

TEST(Timed, ALoadOverBytesThatAreStillReadComesLaterThanTheReads) {
  const auto strict = run_in(next_load_too_early, Schedule::in_order, Arrival::early);
  const auto timed = run_in(next_load_too_early, Schedule::timed, Arrival::early);
  for (std::uint32_t lane = 0; lane < 64; ++lane) {
    EXPECT_EQ(strict[lane], 64 + lane);
    EXPECT_EQ(timed[lane], lane);
  }
}

// Nobody waits for the load: after a long sleep it is there, at once it is not.
TEST(Timed, ResultsAreThereWhenTheirTimeHasCome) {
  const auto asleep = run_in(
      "v_mov_b32 v3, 77\nglobal_load_dword v3, v1, s[6:7] offset:256\ns_sleep 127\ns_sleep 127\nv_mov_b32 v5, v3\n"
      "s_waitcnt vmcnt(0)\nglobal_store_dword v1, v5, s[6:7] offset:1024",
      Schedule::timed, Arrival::early, 64);
  const auto at_once = run_in(
      "v_mov_b32 v3, 77\nglobal_load_dword v3, v1, s[6:7] offset:256\nv_mov_b32 v5, v3\n"
      "s_waitcnt vmcnt(0)\nglobal_store_dword v1, v5, s[6:7] offset:1024",
      Schedule::timed, Arrival::early, 64);
  for (std::uint32_t lane = 0; lane < 64; ++lane) {
    EXPECT_EQ(asleep[lane], 64 + lane);
    EXPECT_EQ(at_once[lane], 77u);
  }
}

// A flag in LDS that one wave sets and the other waits for; barriers; a load behind each.
TEST(Timed, WhatIsOrderedIsWhatItAlwaysIs) {
  const std::string body = R"(
  v_readfirstlane_b32 s8, v0
  v_mov_b32 v6, 0
  v_mov_b32 v7, 1
  s_mov_b32 s9, 0
  s_cmp_lg_u32 s8, 0
  s_cbranch_scc1 .Lsecond
  ds_write_b32 v6, v6 offset:512
  s_waitcnt lgkmcnt(0)
  s_barrier
  global_load_dword v3, v1, s[6:7] offset:256
  s_waitcnt vmcnt(0)
  ds_write_b32 v1, v3
  s_waitcnt lgkmcnt(0)
  ds_write_b32 v6, v7 offset:512
  s_waitcnt lgkmcnt(0)
  s_barrier
  s_endpgm
.Lsecond:
  s_barrier
.Lwait:
  ds_read_b32 v4, v6 offset:512
  s_waitcnt lgkmcnt(0)
  v_readfirstlane_b32 s9, v4
  s_cmp_eq_u32 s9, 0
  s_cbranch_scc1 .Lwait
  ds_read_b32 v5, v1
  v_subrev_u32 v2, 256, v1
  ds_read_b32 v5, v2
  s_waitcnt lgkmcnt(0)
  global_store_dword v2, v5, s[6:7] offset:1024
  s_barrier)";
  for (const auto& [schedule, arrival] :
       {std::pair(Schedule::in_order, Arrival::early), std::pair(Schedule::random, Arrival::late),
        std::pair(Schedule::timed, Arrival::early)}) {
    const auto result = run_in(body, schedule, arrival);
    for (std::uint32_t lane = 0; lane < 64; ++lane) EXPECT_EQ(result[lane], 64 + lane) << static_cast<int>(schedule);
  }
}

// A check still sees what holds by time alone.
TEST(Timed, ChecksSeeWhatHoldsByTimeAlone) {
  const Assembled kernel(KernelSource{.body = std::string(prologue) + next_load_too_early, .lds_bytes = 1024});
  Buffer<std::uint32_t> memory(512);
  const Checked checked =
      run_checked(kernel, {memory.address()},
                  {.checks = static_cast<std::uint32_t>(Check::races), .schedule = Schedule::timed, .threads = 128});
  EXPECT_THAT(checked.names(), ::testing::Contains("races"));
}

}  // namespace
}  // namespace wavejit::simgpu::testing
