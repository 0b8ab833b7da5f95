// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A plain load in front of a loop over compare-and-swap is no race: what LLVM makes of atomicMax of floats on CDNA.
// Each with what is left of it when the load goes somewhere else.
#include <format>
#include <string>

#include "checked.h"

namespace wavejit::simgpu::testing {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::IsEmpty;

constexpr CheckedRun four_workgroups{.workgroups = {4, 1, 1}, .threads = 128};

// v4: the place, of four for all lanes; v3: what this lane has to say. Each lane's maximum, `load` first.
std::string maximum(const std::string& load, const std::string& swap_at) {
  return std::string(prologue) + "v_and_b32 v4, 12, v1\nv_lshl_add_u32 v3, s2, 7, v0\ns_mov_b64 s[8:9], 0\n" + load +
         "\ns_waitcnt vmcnt(0)\n.Lagain:\nv_max_u32 v6, v3, v5\nv_mov_b32 v7, v5\n"
         "global_atomic_cmpswap v8, " +
         swap_at +
         ", v[6:7], s[6:7] sc0\ns_waitcnt vmcnt(0)\nv_cmp_eq_u32 vcc, v8, v7\ns_or_b64 s[8:9], vcc, s[8:9]\n"
         "v_mov_b32 v5, v8\ns_andn2_b64 exec, exec, s[8:9]\ns_cbranch_execnz .Lagain\n";
}
constexpr const char* load_of_it = "global_load_dword v5, v4, s[6:7]";

void expect(const Assembled& kernel, bool race) {
  for (const Schedule schedule : {Schedule::in_order, Schedule::reverse, Schedule::random}) {
    for (const Arrival arrival : {Arrival::early, Arrival::late}) {
      for (const std::uint32_t host_threads : {1U, 2U}) {
        Buffer<std::uint32_t> memory(1024, 0);
        CheckedRun how = four_workgroups;
        how.checks = static_cast<std::uint32_t>(Check::races);
        how.schedule = schedule;
        how.arrival = arrival;
        how.host_threads = host_threads;
        const Checked checked = run_checked(kernel, {memory.address()}, how);
        if (race) {
          EXPECT_THAT(checked.names(), AllOf(Contains("races"), Each("races")));
        } else {
          EXPECT_THAT(checked.findings, IsEmpty()) << checked.text();
          for (std::uint32_t i = 0; i < 4; ++i) EXPECT_EQ(memory[i], 508 + i);
        }
      }
    }
  }
}

TEST(SwapLoops, TheLoadInFrontIsNoRace) {
  for (const char* target : {"gfx942", "gfx950"}) {
    expect(Assembled(KernelSource{.body = maximum(load_of_it, "v4"), .target = target}), false);
  }
}
TEST(SwapLoops, NorIsItThroughFlatPointers) {
  std::string body = maximum(
      "v_mov_b32 v11, s7\nv_add_co_u32 v10, vcc, s6, v4\ns_nop 1\n"
      "v_addc_co_u32 v11, vcc, 0, v11, vcc\nflat_load_dword v5, v[10:11]\ns_waitcnt lgkmcnt(0)",
      "v4");
  expect(Assembled(body), false);
}
TEST(SwapLoops, ALoadOfAnotherPlaceIsARace) {
  // What the loop swaps lies sixteen bytes behind what was loaded, and others' atomics reach both.
  expect(Assembled(maximum("v_add_u32 v9, 16, v4\nglobal_load_dword v5, v9, s[6:7]\ns_waitcnt vmcnt(0)\n"
                           "v_mov_b32 v10, 1\nglobal_atomic_add v9, v10, s[6:7]",
                           "v4")),
         true);
}
TEST(SwapLoops, ALoadThatNoSwapFollowsIsARace) {
  // One lane's loop is in the same function, and the load is for something else.
  expect(Assembled(maximum("global_atomic_umax v4, v3, s[6:7] offset:64\nglobal_load_dword v5, v4, s[6:7] offset:64\n"
                           "s_waitcnt vmcnt(0)\nv_mov_b32 v5, 0",
                           "v4")),
         true);
}
TEST(SwapLoops, APlainStoreIsARaceWithIt) {
  expect(Assembled(maximum(std::string("global_store_dword v4, v3, s[6:7]\n") + load_of_it, "v4")), true);
}

// The same in LDS, of two waves.
TEST(SwapLoops, InLds) {
  const auto kernel = [](const std::string& load) {
    return Assembled(KernelSource{
        .body = std::string(prologue) +
                "v_and_b32 v4, 12, v1\nv_mov_b32 v9, 0\nds_write_b32 v4, v9\nds_write_b32 v4, v9 offset:64\n"
                "s_waitcnt lgkmcnt(0)\ns_barrier\ns_mov_b64 s[8:9], 0\n" +
                load +
                "\ns_waitcnt lgkmcnt(0)\n.Lagain:\nv_max_u32 v6, v0, v5\nv_mov_b32 v7, v5\n"
                "ds_cmpst_rtn_b32 v8, v4, v7, v6\ns_waitcnt lgkmcnt(0)\nv_cmp_eq_u32 vcc, v8, v7\n"
                "s_or_b64 s[8:9], vcc, s[8:9]\nv_mov_b32 v5, v8\ns_andn2_b64 exec, exec, s[8:9]\n"
                "s_cbranch_execnz .Lagain\n",
        .target = "gfx942",
        .lds_bytes = 512});
  };
  const CheckedRun two_waves{.threads = 128};
  expect_race(kernel("ds_read_b32 v5, v4"), two_waves, false);
  expect_race(kernel("ds_max_u32 v4, v0 offset:64\nds_read_b32 v5, v4 offset:64\ns_waitcnt lgkmcnt(0)\n"
                     "v_mov_b32 v5, 0"),
              two_waves, true, "LDS byte");
}

}  // namespace
}  // namespace wavejit::simgpu::testing
