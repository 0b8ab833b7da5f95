// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SIMDs that take vector and matrix instructions in order, by kernels whose time can be worked out by hand.
#include "simgpu/checkers/clock/ordered_issue.h"

#include <format>

#include "clocked.h"
#include "gtest/gtest.h"

namespace wavejit::simgpu::testing {
namespace {

// Products whose results nobody else reads.
std::string products(unsigned count) {
  std::string text;
  for (unsigned i = 0; i < count; ++i) {
    const unsigned first = 16 + (8 * i);
    text += std::format("v_wmma_f32_16x16x16_f16 v[{0}:{1}], v[8:11], v[8:11], v[{0}:{1}]\n", first, first + 7);
  }
  return text;
}

clock::ComputeUnitResult run(const std::string& body, unsigned copies, unsigned waves) {
  std::string text;
  for (unsigned i = 0; i < 128; ++i) text += std::format("v_mov_b32 v{}, 0\n", i);
  text += "s_barrier_signal -1\ns_barrier_wait -1\n";
  text += std::format("s_mov_b32 s60, {}\n7:\n{}\ns_sub_co_i32 s60, s60, 1\ns_cmp_lg_u32 s60, 0\ns_cbranch_scc1 7b\n",
                      copies, body);
  const Clocked clocked =
      run_clocked({.source = {.body = text, .target = "gfx1201", .lds_bytes = 1024, .vgprs = 128}, .waves = waves});
  EXPECT_EQ(clocked.error, "");
  return clocked.result;
}

// Cycles of one turn of a loop.
double cycles_of(const std::string& body, unsigned waves = 1) {
  constexpr unsigned few = 16;
  constexpr unsigned many = 80;
  const auto difference = run(body, many, waves).cycles - run(body, few, waves).cycles;
  return static_cast<double>(difference) / (many - few);
}

TEST(OrderedIssue, NothingRunsBesideAMatrixInstruction) {
  // Ten products of 16 cycles: the end of the loop stands beside them, as in hardware's trace of such a loop.
  EXPECT_NEAR(cycles_of(products(10)), 160, 0.5);
  // 24 plain instructions take their own cycles, and the end of the loop stands behind them: 23 cycles.
  const std::string both = products(10) + repeated("v_add_f32 v{}, v2, v3", 24, 100);
  EXPECT_NEAR(cycles_of(both), 184 + 23, 1);
  // Those of another wave of the SIMD likewise: 8 waves of a workgroup are 2 a SIMD. One hides the other's end.
  EXPECT_NEAR(cycles_of(both, 8), 368, 23);
  EXPECT_GE(cycles_of(both, 8), 368);
}

TEST(OrderedIssue, PlainInstructionsCoverATranscendentalOne) {
  const auto repeat = [](const std::string& text) { return repeated(text, 16); };
  const double turn = cycles_of(repeat("v_exp_f32 v16, v2\n"));
  EXPECT_NEAR(turn, 16 * 4 + 20, 4);
  EXPECT_NEAR(
      cycles_of(repeat("v_exp_f32 v16, v2\nv_add_f32 v20, v2, v3\nv_add_f32 v21, v2, v3\nv_add_f32 v22, v2, v3")), turn,
      4);
  // A product does not stand beside one.
  EXPECT_GE(cycles_of(repeat("v_exp_f32 v112, v2\n" + products(1))), 16 * 20);
}

TEST(OrderedIssue, WhatReadsAResultWaitsForIt) {
  const double plain = cycles_of(repeated("v_add_f32 v20, v2, v3", 32));
  const double chain = cycles_of(repeated("v_add_f32 v20, v20, v3", 32));
  // In the queue, beside the end of the loop.
  EXPECT_NEAR(chain, 32 * 5, 1);
  EXPECT_LT(plain, 32 + 24);
  // s_delay_alu holds the wave in place of the queue: the end of the loop comes after it.
  EXPECT_NEAR(cycles_of(repeated("s_delay_alu instid0(VALU_DEP_1)\nv_add_f32 v20, v20, v3", 32)), (32 * 5) + 20, 6);
  // A sum of products goes on after two cycles.
  EXPECT_NEAR(cycles_of(repeated(products(1), 8)), 8 * 18, 5);
}

// What 64 instructions of a loop take, beside the end of the loop.
double cycles_of_pairs(const std::string& pair) { return cycles_of(repeated(pair, 64)) / 64; }

TEST(OrderedIssue, APairTakesOneRegisterOfEachBankInACycle) {
  // v20, v21, v22, v23 are of four banks; v20 and v24 of one.
  EXPECT_NEAR(cycles_of_pairs("v_dual_add_f32 v16, v20, v21 :: v_dual_add_f32 v17, v22, v23"), 1, 0.4);
  EXPECT_NEAR(cycles_of_pairs("v_dual_add_f32 v16, v20, v24 :: v_dual_add_f32 v17, v21, v25"), 2, 0.2);
  // One register for both is read once.
  EXPECT_NEAR(cycles_of_pairs("v_dual_mul_f32 v16, v20, v21 :: v_dual_mul_f32 v17, v22, v20"), 1, 0.4);
  // Sums that are added to are read, too: so many pairs that none waits for its own.
  std::string sums;
  for (unsigned i = 0; i < 4; ++i)
    sums += std::format("v_dual_fmac_f32 v{}, v20, v24 :: v_dual_fmac_f32 v{}, v21, v25\n", 32 + (4 * i), 33 + (4 * i));
  EXPECT_NEAR(cycles_of_pairs(sums), 4 * 3, 0.4);
  // What other instructions read is gathered ahead.
  EXPECT_NEAR(cycles_of_pairs("v_fma_f32 v16, v20, v24, v28"), 1, 0.4);
}

TEST(OrderedIssue, ScalarInstructionsOverwriteWhatVectorOnesHaveRead) {
  const double unread = cycles_of(repeated("v_add_f32 v16, v2, v3\ns_mov_b32 s40, 0", 16));
  const double read = cycles_of(repeated("v_add_f32 v16, s42, v3\ns_mov_b32 s40, 0", 16));
  EXPECT_NEAR(unread, 16 * 2 + 20, 8);
  EXPECT_NEAR(read, 16 * 8 + 20, 8);
  // A comparison writes none.
  EXPECT_NEAR(cycles_of(repeated("v_add_f32 v16, s42, v3\ns_cmp_eq_u32 s40, 0", 16)), unread, 8);
}

TEST(OrderedIssue, CountersOfTheirOwn) {
  const double load = cycles_of("ds_load_b32 v16, v2\ns_wait_dscnt 0x0");
  EXPECT_NEAR(load, 32 + 20, 8);
  const clock::ComputeUnitResult result = run("ds_load_b32 v16, v2\ns_wait_dscnt 0x0", 16, 1);
  EXPECT_GT(result.waves.front().waited[static_cast<std::size_t>(clock::Cause::lds)], 16U * 20);
}

TEST(OrderedIssue, BarriersInTwoPartsWaitForTheLastSignal) {
  // One wave works before it signals, all others wait for it.
  const clock::ComputeUnitResult result = run(R"(
  v_readfirstlane_b32 s40, v0
  s_barrier_signal -1
  s_barrier_wait -1)",
                                              16, 8);
  for (const clock::WaveResult& wave : result.waves)
    EXPECT_GT(wave.waited[static_cast<std::size_t>(clock::Cause::barrier)], 16U * 10);
}

}  // namespace
}  // namespace wavejit::simgpu::testing
