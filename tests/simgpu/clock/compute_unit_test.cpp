// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The rules of a compute unit one by one, by kernels whose time can be worked out by hand.
#include "simgpu/checkers/clock/compute_unit.h"

#include <algorithm>

#include "clocked.h"
#include "gtest/gtest.h"

namespace wavejit::simgpu::testing {
namespace {

using clock::Cause;

constexpr const char* matrix = "v_mfma_f32_32x32x16_f16 v[8:23], v[2:5], v[4:7], v[8:23]\n";  // 32 cycles

double cycles_of(const Stream& stream) {
  const StreamTime time = time_stream(stream);
  EXPECT_EQ(time.error, "");
  return time.cycles;
}

std::uint64_t waited(const clock::ComputeUnitResult& result, Cause cause) {
  std::uint64_t all = 0;
  for (const clock::WaveResult& wave : result.waves) all += wave.waited[static_cast<std::size_t>(cause)];
  return all;
}

TEST(ComputeUnit, OneWaveIssuesOnceALook) {
  EXPECT_EQ(cycles_of({.body = "s_add_u32 s41, s41, 1"}), 4);
  EXPECT_EQ(cycles_of({.body = "v_mov_b32 v32, v2\ns_add_u32 s41, s41, 1"}), 8);
}

TEST(ComputeUnit, UnitsOfOneSimdWorkSideBySide) {
  // Two waves of one SIMD: the scalar instructions of one stand beside the vector instructions of the other.
  const std::string body = "v_mov_b32 v32, v2\ns_add_u32 s41, s41, 1";
  EXPECT_EQ(cycles_of({.body = body, .waves = 8}), 8);
  // Vector instructions share a port.
  EXPECT_EQ(cycles_of({.body = "v_mov_b32 v32, v2", .waves = 8}), 8);
  // Waves of different SIMDs share nothing here.
  EXPECT_EQ(cycles_of({.body = "v_mov_b32 v32, v2", .waves = 4}), 4);
}

TEST(ComputeUnit, AnotherWaveFillsTheShadowOfAMatrixInstruction) {
  const std::string work = std::string(matrix) + repeated("v_add_f32 v{}, v2, v3", 14, 32);
  // Alone: 32 cycles of pipe, 64 of port. Two waves: 128 of port for 64 of pipe.
  EXPECT_NEAR(cycles_of({.body = work}), 64, 0.5);
  EXPECT_NEAR(cycles_of({.body = work, .waves = 8}), 128, 1);
  const std::string little = std::string(matrix) + repeated("v_add_f32 v{}, v2, v3", 3, 32);
  EXPECT_NEAR(cycles_of({.body = little, .waves = 8}), 64, 1);
}

TEST(ComputeUnit, PrivateMemoryIsMemory) {
  const Clocked clocked = run_clocked({.source = {.body = "scratch_store_dwordx4 off, v[2:5], off\n"
                                                          "s_waitcnt vmcnt(0)\n"
                                                          "scratch_load_dwordx4 v[6:9], off, off\n"
                                                          "s_waitcnt vmcnt(0)\n",
                                                  .private_bytes = 16}});
  ASSERT_EQ(clocked.error, "");
  // Each dword of the 64 lanes is 256 bytes: two lines. What was written is read from L2.
  EXPECT_EQ(clocked.result.memory.lines, 16U);
  EXPECT_EQ(clocked.result.memory.l2_hits, 8U);
  EXPECT_EQ(clocked.result.memory.memory, 0U);
}

TEST(ComputeUnit, MatrixResultsTakeTheirPassesAndFour) {
  // What reads a result of 8 passes waits 12 × 4 cycles; the next product accumulates on without a wait.
  EXPECT_NEAR(cycles_of({.body = std::string(matrix) + "v_add_f32 v32, v8, v9\n"}), 52, 0.5);
  EXPECT_NEAR(cycles_of({.body = matrix}), 32, 0.5);
  const StreamTime time = time_stream({.body = std::string(matrix) + "v_add_f32 v32, v8, v9\n"});
  EXPECT_GT(waited(time.result, Cause::matrix_result), 0U);
}

TEST(ComputeUnit, PriorityGoesBeforeAge) {
  // Wave 4 shares SIMD 0 with wave 0, is younger, and asks for priority: it ends first.
  const Clocked clocked = run_clocked({.source = {.body = R"(
  v_readfirstlane_b32 s40, v0
  s_cmp_lt_u32 s40, 256
  s_cbranch_scc1 .Lold
  s_setprio 3
.Lold:
  s_barrier
)" + repeated("v_mov_b32 v2, v3", 4000)},
                                       .waves = 8});
  ASSERT_EQ(clocked.error, "");
  const auto& waves = clocked.result.waves;
  ASSERT_EQ(waves.size(), 8U);
  EXPECT_EQ(waves[0].simd, waves[4].simd);
  EXPECT_LT(waves[4].end + 1000, waves[0].end);
  EXPECT_GT(waves[0].waited[static_cast<std::size_t>(Cause::vector_port)] +
                waves[0].waited[static_cast<std::size_t>(Cause::other_wave)],
            4000U);
}

TEST(ComputeUnit, WaitsCountWhatIsOutstanding) {
  const Buffer<std::uint32_t> memory(4096);
  const std::string load = R"(
  s_load_dwordx2 s[6:7], s[0:1], 0x0
  v_lshlrev_b32 v1, 2, v0
  s_waitcnt lgkmcnt(0)
  global_load_dword v2, v1, s[6:7]
  global_load_dword v3, v1, s[6:7] offset:1024
)";
  const auto run = [&](const std::string& wait) {
    return run_clocked({.source = {.body = load + wait}, .arguments = {memory.address()}});
  };
  const Clocked none = run("");
  const Clocked one = run("s_waitcnt vmcnt(1)\n");
  const Clocked all = run("s_waitcnt vmcnt(0)\n");
  ASSERT_EQ(none.error + one.error + all.error, "");
  EXPECT_LT(none.result.cycles + 900, one.result.cycles);  // memory's latency on gfx950 is 994
  EXPECT_LT(one.result.cycles, all.result.cycles);
  EXPECT_EQ(waited(none.result, Cause::vector_memory), 0U);
  EXPECT_GT(waited(one.result, Cause::vector_memory), 900U);
  EXPECT_GT(waited(one.result, Cause::scalar_memory), 0U);
}

// Arguments are in the scalar cache, what they point to is not, and is afterwards.
TEST(ComputeUnit, ScalarLoadsWaitForMemoryOnce) {
  const Buffer<std::uint32_t> memory(4096);
  const std::string load = R"(
  s_load_dwordx2 s[6:7], s[0:1], 0x0
  s_waitcnt lgkmcnt(0)
  s_load_dword s8, s[6:7], 0x0
  s_waitcnt lgkmcnt(0)
)";
  const auto run = [&](const std::string& more) {
    return run_clocked({.source = {.body = load + more}, .arguments = {memory.address()}});
  };
  const Clocked once = run("");
  const Clocked twice = run("s_load_dword s9, s[6:7], 0x40\ns_waitcnt lgkmcnt(0)\n");
  ASSERT_EQ(once.error + twice.error, "");
  EXPECT_GT(waited(once.result, Cause::scalar_memory), 900U);
  EXPECT_LT(twice.result.cycles, once.result.cycles + 60);
}

TEST(ComputeUnit, BankConflictsCostTheirTurns) {
  // 16 lanes of a phase in one bank: 4 phases of 16 turns instead of 4.
  const auto reads = [](unsigned shift) {
    return time_stream({.before = "v_lshlrev_b32 v1, " + std::to_string(shift) + ", v0\n",
                        .body = "ds_read_b128 v[32:35], v1\n",
                        .waves = 1,
                        .lds_bytes = 65536});
  };
  const StreamTime free = reads(4);
  const StreamTime conflict = reads(10);
  ASSERT_EQ(free.error + conflict.error, "");
  EXPECT_EQ(free.result.lds_lost, 0U);
  EXPECT_EQ(conflict.result.lds_lost, 160U * 4 * 15);
  EXPECT_NEAR(conflict.cycles, 4 + 60, 1);
}

TEST(ComputeUnit, DirectCopiesFillLdsBehindTheCounter) {
  const Buffer<std::uint32_t> memory(65536);
  const std::string copy = R"(
  s_load_dwordx2 s[20:21], s[0:1], 0
  v_lshlrev_b32 v1, 4, v0
  s_mov_b32 s22, 0x40000
  s_mov_b32 s23, 0x27000
  s_mov_b32 m0, 0
  s_waitcnt lgkmcnt(0)
  buffer_load_dwordx4 v1, s[20:23], 0 offen lds
  s_waitcnt vmcnt(0)
)";
  const Clocked clocked = run_clocked({.source = {.body = copy, .lds_bytes = 4096}, .arguments = {memory.address()}});
  ASSERT_EQ(clocked.error, "");
  EXPECT_EQ(clocked.result.memory.lines, 8U);  // 1 KiB
  EXPECT_GT(waited(clocked.result, Cause::vector_memory), 1000U);
}

TEST(ComputeUnit, BarriersHoldEverybodyUntilTheLast) {
  // Wave 0 works 400 instructions longer before the barrier than the others.
  const Clocked clocked = run_clocked({.source = {.body = R"(
  v_readfirstlane_b32 s40, v0
  s_cmp_ge_u32 s40, 64
  s_cbranch_scc1 .Lmeet
)" + repeated("v_mov_b32 v2, v3", 400) + ".Lmeet:\n  s_barrier\n"},
                                       .waves = 4});
  ASSERT_EQ(clocked.error, "");
  const auto& waves = clocked.result.waves;
  EXPECT_LT(waves[0].waited[static_cast<std::size_t>(Cause::barrier)], 100U);
  for (std::size_t i = 1; i < waves.size(); ++i)
    EXPECT_GT(waves[i].waited[static_cast<std::size_t>(Cause::barrier)], 1400U) << i;
  for (const auto& wave : waves) EXPECT_NEAR(static_cast<double>(wave.end), static_cast<double>(waves[0].end), 8);
}

TEST(ComputeUnit, PausesTakeWhatTheySay) {
  EXPECT_NEAR(cycles_of({.body = "s_nop 7"}), 32, 0.5);
  EXPECT_NEAR(cycles_of({.body = "s_sleep 2"}), 132, 0.5);
}

TEST(ComputeUnit, EveryCycleOfAWaveIsAccountedFor) {
  const StreamTime time =
      time_stream({.body = std::string(matrix) + "ds_read_b128 v[32:35], v1\ns_waitcnt lgkmcnt(0)\ns_barrier\n",
                   .waves = 8,
                   .lds_bytes = 65536});
  ASSERT_EQ(time.error, "");
  for (const clock::WaveResult& wave : time.result.waves) {
    std::uint64_t waits = 0;
    for (const std::uint64_t cycles : wave.waited) waits += cycles;
    const double looks = static_cast<double>(wave.end - wave.start);
    // Looks at which it issued, and looks at which it did not; waves wait for their start as well.
    EXPECT_NEAR(static_cast<double>(waits + (4 * wave.issued)), looks + static_cast<double>(wave.start), 12);
  }
}

TEST(ComputeUnit, ASeventhVectorInstructionDoesNotFitBesideAMatrixOne) {
  EXPECT_NEAR(cycles_of({.body = std::string(matrix) + repeated("v_add_f32 v{}, v2, v3", 6, 32)}), 32, 0.5);
  EXPECT_NEAR(cycles_of({.body = std::string(matrix) + repeated("v_add_f32 v{}, v2, v3", 7, 32)}), 36, 0.5);
}

TEST(ComputeUnit, PackedInstructionsWaitUntilThePipeHasCooled) {
  // 32 cycles of pipe, 12 more, and 4 of its own.
  EXPECT_NEAR(cycles_of({.body = std::string(matrix) + "v_pk_mul_f32 v[32:33], v[2:3], v[4:5]\n"}), 48, 0.5);
}

TEST(ComputeUnit, VectorInstructionsHoldUpWhatGoesToMemory) {
  EXPECT_NEAR(cycles_of({.body = "v_add_f32 v32, v2, v3\nds_read_b32 v33, v1\n", .lds_bytes = 4096}), 16, 0.5);
  EXPECT_NEAR(cycles_of({.body = "ds_read_b32 v33, v1\nv_add_f32 v32, v2, v3\n", .lds_bytes = 4096}), 16, 0.5);
  // Matrix instructions do not.
  EXPECT_NEAR(cycles_of({.body = std::string(matrix) + "ds_read_b32 v33, v1\n", .lds_bytes = 4096}), 32, 0.5);
}

TEST(ComputeUnit, ScalarsOfVectorInstructionsComeLate) {
  EXPECT_NEAR(cycles_of({.body = "v_cmp_lt_f32 vcc, v2, v3\ns_add_u32 s41, s41, 1\n"}), 24, 0.5);
  EXPECT_NEAR(cycles_of({.body = "v_add_f32 v32, v2, v3\ns_add_u32 s41, s41, 1\n"}), 8, 0.5);
}

TEST(ComputeUnit, BranchesOnTheConditionBitTakeTheirTimeEitherWay) {
  // A branch that is passed costs as much as one that is taken; one on EXEC costs a look.
  EXPECT_NEAR(cycles_of({.body = "s_cmp_eq_u32 s41, s41\ns_cbranch_scc0 9f\n9:\n"}), 24, 0.5);
  EXPECT_NEAR(cycles_of({.body = "s_cbranch_execz 9f\n9:\n"}), 4, 0.5);
}

TEST(ComputeUnit, AFullQueueOfLdsHoldsUpItsWaves) {
  // 14 reads of 16 ways: each keeps the banks busy for 64 cycles, eight wait, the next one cannot issue.
  const std::string reads = repeated("ds_read_b128 v[32:35], v1", 14);
  const Clocked clocked =
      run_clocked({.source = {.body = "v_lshlrev_b32 v1, 8, v0\n" + reads, .lds_bytes = 65536}, .waves = 1});
  ASSERT_EQ(clocked.error, "");
  EXPECT_GT(waited(clocked.result, Cause::queue), 200U);
  const Clocked few = run_clocked(
      {.source = {.body = "v_lshlrev_b32 v1, 8, v0\n" + repeated("ds_read_b128 v[32:35], v1", 8), .lds_bytes = 65536},
       .waves = 1});
  EXPECT_EQ(waited(few.result, Cause::queue), 0U);
}

TEST(ComputeUnit, LoadsWaitWhileL1IsOnItsWay) {
  // Each lane has lines of its own: 8 KiB a load, four of them are 32 KiB, and twelve wait in the queue.
  const Buffer<std::uint32_t> memory(std::size_t{4} << 20);
  const auto run = [&](unsigned loads) {
    std::string body = "s_load_dwordx2 s[6:7], s[0:1], 0x0\nv_lshlrev_b32 v1, 7, v0\ns_waitcnt lgkmcnt(0)\n";
    for (unsigned i = 0; i < loads; ++i) body += "global_load_dword v2, v1, s[6:7]\nv_add_u32 v1, 0x2000, v1\n";
    return run_clocked({.source = {.body = body + "s_waitcnt vmcnt(0)\n"}, .arguments = {memory.address()}});
  };
  const Clocked four = run(4);
  const Clocked eight = run(8);
  const Clocked many = run(24);
  ASSERT_EQ(four.error + eight.error + many.error, "");
  // A second batch of four takes memory's latency again.
  EXPECT_GT(eight.result.cycles, four.result.cycles + 1000);
  EXPECT_EQ(waited(eight.result, Cause::queue), 0U);
  EXPECT_GT(waited(many.result, Cause::queue), 1000U);
  // Loads of lines that are on their way already ask for nothing, and wait for no room.
  std::string again = "s_load_dwordx2 s[6:7], s[0:1], 0x0\nv_lshlrev_b32 v1, 7, v0\ns_waitcnt lgkmcnt(0)\n";
  again += repeated("global_load_dword v2, v1, s[6:7]", 16);
  const Clocked same =
      run_clocked({.source = {.body = again + "s_waitcnt vmcnt(0)\n"}, .arguments = {memory.address()}});
  EXPECT_LT(same.result.cycles, four.result.cycles + 1000);
}

TEST(ComputeUnit, L1PassesOnTheHalvesOfLinesThatSomebodyWants) {
  // The same 64 lines again and again, of which each lane wants bytes in one half, or in both.
  const Buffer<std::uint32_t> memory(std::size_t{1} << 20);
  const auto cycles_of_load = [&](const std::string& load) {
    const auto run = [&](unsigned loads) {
      const Clocked clocked = run_clocked(
          {.source = {.body = "s_load_dwordx2 s[6:7], s[0:1], 0x0\nv_lshlrev_b32 v1, 7, v0\ns_waitcnt lgkmcnt(0)\n" +
                              load + "s_waitcnt vmcnt(0)\n" + repeated(load, loads) + "s_waitcnt vmcnt(0)\n"},
           .arguments = {memory.address()}});
      EXPECT_EQ(clocked.error, "");
      return static_cast<double>(clocked.result.cycles);
    };
    return (run(32) - run(16)) / 16;
  };
  EXPECT_NEAR(cycles_of_load("global_load_dword v2, v1, s[6:7]\n"), 64, 1);
  EXPECT_NEAR(cycles_of_load("global_load_dwordx4 v[2:5], v1, s[6:7] offset:64\n"), 64, 1);
  EXPECT_NEAR(cycles_of_load("global_load_dwordx2 v[2:3], v1, s[6:7] offset:60\n"), 128, 1);
}

TEST(ComputeUnit, TheAddressUnitTakesFourLanesAndTheirLines) {
  const Buffer<std::uint32_t> memory(std::size_t{1} << 20);
  const auto load = [&](unsigned shift, const std::string& width, const std::string& to) {
    const std::string body = "s_load_dwordx2 s[6:7], s[0:1], 0x0\nv_lshlrev_b32 v1, " + std::to_string(shift) +
                             ", v0\ns_waitcnt lgkmcnt(0)\nglobal_load_" + width + " " + to + ", v1, s[6:7]\n";
    const Clocked clocked = run_clocked({.source = {.body = body}, .arguments = {memory.address()}});
    EXPECT_EQ(clocked.error, "");
    return clocked.result.address_busy;
  };
  EXPECT_EQ(load(4, "dwordx4", "v[4:7]"), 16U);
  EXPECT_EQ(load(7, "dwordx4", "v[4:7]"), 64U);  // every lane has a line of its own
  EXPECT_EQ(load(3, "dwordx2", "v[4:5]"), 16U);
  EXPECT_EQ(load(2, "dword", "v4"), 4U);
  EXPECT_EQ(load(7, "dword", "v4"), 64U);
}

TEST(ComputeUnit, AWaveEndsWhenItsStoresHaveArrived) {
  const Buffer<std::uint32_t> memory(4096);
  const auto run = [&](const std::string& access) {
    const Clocked clocked =
        run_clocked({.source = {.body = "s_load_dwordx2 s[6:7], s[0:1], 0x0\nv_lshlrev_b32 v1, 2, v0\n"
                                        "s_waitcnt lgkmcnt(0)\n" +
                                        access},
                     .arguments = {memory.address()}});
    EXPECT_EQ(clocked.error, "");
    return clocked.result.cycles;
  };
  EXPECT_GT(run("global_store_dword v1, v1, s[6:7]\n"), run("global_load_dword v2, v1, s[6:7]\n") + 400);
}

TEST(ComputeUnit, TheSameTracesGiveTheSameResult) {
  const Stream stream{.body = std::string(matrix) + "ds_read_b128 v[32:35], v1\ns_waitcnt lgkmcnt(0)\n",
                      .waves = 8,
                      .lds_bytes = 65536};
  const StreamTime one = time_stream(stream);
  const StreamTime two = time_stream(stream);
  EXPECT_EQ(one.result.cycles, two.result.cycles);
  EXPECT_EQ(one.result.matrix_buckets, two.result.matrix_buckets);
}

TEST(ComputeUnit, CodeThatDoesNotFitTheInstructionCacheIsFetchedAgain) {
  const auto fetches = [](unsigned instructions) {
    const Clocked clocked = run_clocked(
        {.source = {.body = "s_mov_b32 s40, 4\n.Lloop:\n" + repeated("v_add_f32_e64 v2, v3, v4 clamp", instructions) +
                            "s_sub_u32 s40, s40, 1\ns_cmp_lg_u32 s40, 0\ns_cbranch_scc0 .Lout\ns_getpc_b64 s[10:11]\n"
                            ".Lhere:\ns_add_u32 s10, s10, .Lloop-.Lhere\ns_addc_u32 s11, s11, -1\n"
                            "s_setpc_b64 s[10:11]\n.Lout:\n"}});
    EXPECT_EQ(clocked.error, "");
    return waited(clocked.result, Cause::fetch);
  };
  EXPECT_EQ(fetches(4000), 0U);       // 32 KB
  EXPECT_GT(fetches(12000), 10000U);  // 96 KB
}

TEST(ComputeUnit, ATimelineShowsWhatRanAndWhatWaited) {
  const Clocked clocked = run_clocked({.source = {.body = repeated("v_exp_f32 v2, v3", 50)}, .timeline_last = 100});
  ASSERT_EQ(clocked.error, "");
  ASSERT_FALSE(clocked.result.timeline.empty());
  EXPECT_TRUE(
      std::ranges::any_of(clocked.result.timeline, [](const auto& event) { return event.waited_for != Cause::count; }));
  for (const auto& event : clocked.result.timeline) EXPECT_LT(event.start, 100U);
}

TEST(ComputeUnit, ATimelineTellsEachCauseOfAWait) {
  // What reads the product's result waits for the exponential before it to let go of the wave, then for the result.
  const Clocked clocked = run_clocked(
      {.source = {.body = std::string(matrix) + "v_exp_f32 v32, v2\nv_add_f32 v33, v8, v9\n"}, .timeline_last = 1000});
  ASSERT_EQ(clocked.error, "");
  // One event after the other, and together what the wave waited for, cause by cause.
  clock::CyclesByCause waits{};
  std::uint64_t last = 0;
  for (const auto& event : clocked.result.timeline) {
    if (event.waited_for == Cause::count) continue;
    EXPECT_GE(event.start, last);
    last = event.start + event.cycles;
    waits[static_cast<std::size_t>(event.waited_for)] += event.cycles;
  }
  EXPECT_EQ(waits, clocked.result.waves.front().waited);
  EXPECT_GT(std::ranges::count_if(waits, [](std::uint64_t cycles) { return cycles != 0; }), 1);
}

}  // namespace
}  // namespace wavejit::simgpu::testing
