// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Selects that RDNA4 pairs with another instruction (VOPD) go alone, from either half.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "analysis/kernel_code.h"
#include "assembled.h"
#include "mutation.h"

namespace wavejit::tests {
namespace {

std::vector<std::string> lines_of(std::span<const std::byte> code_object) {
  const auto code = analysis::KernelCode::read(code_object);
  if (!code) return {code.error()};
  std::vector<std::string> lines;
  for (const simgpu::Instruction& instruction : code->instructions()) lines.push_back(code->text(instruction));
  return lines;
}

// The pair between two instructions, with each of its selects gone.
std::vector<std::string> without_selects(const std::string& pair) {
  const std::string body = "s_branch end\n" + pair + "\nv_mov_b32_e32 v20, v21\nend:";
  const std::vector<std::byte> whole = simgpu::testing::assemble({.body = body, .target = "gfx1201"});
  const std::vector<std::string> before = lines_of(whole);
  EXPECT_EQ(before.at(1), pair);
  const auto mutations = mutations_of(whole);
  if (!mutations) return {mutations.error()};
  std::vector<std::string> changed;
  for (const Mutation& mutation : *mutations) {
    EXPECT_EQ(mutation.name(), "mask_removed v_dual_cndmask_b32 | v_mov_b32");
    EXPECT_THAT(pair, ::testing::HasSubstr(mutation.instruction));
    std::vector<std::string> after = lines_of(mutation.code_object);
    EXPECT_EQ(after.at(2), before.at(2));
    changed.push_back(after.at(1));
  }
  return changed;
}

TEST(PairMutations, TakeASelectOutOfEitherHalf) {
  using Lines = std::vector<std::string>;
  EXPECT_EQ(without_selects("v_dual_cndmask_b32 v0, v1, v2 :: v_dual_mov_b32 v3, v4"),
            Lines{"v_dual_mov_b32 v0, v0 :: v_dual_mov_b32 v3, v4"});
  EXPECT_EQ(without_selects("v_dual_mul_f32 v0, v1, v2 :: v_dual_cndmask_b32 v3, 0, v5"),
            Lines{"v_dual_mul_f32 v0, v1, v2 :: v_dual_mov_b32 v3, v3"});
  EXPECT_EQ(without_selects("v_dual_cndmask_b32 v6, 0, v2 :: v_dual_cndmask_b32 v3, v7, v5"),
            (Lines{"v_dual_mov_b32 v6, v6 :: v_dual_cndmask_b32 v3, v7, v5",
                   "v_dual_cndmask_b32 v6, 0, v2 :: v_dual_mov_b32 v3, v3"}));
}

// A constant of 32 bits stands behind both, and goes with the last half that reads it.
TEST(PairMutations, LeaveTheOtherHalfItsConstant) {
  using Lines = std::vector<std::string>;
  EXPECT_EQ(without_selects("v_dual_cndmask_b32 v7, 0x42, v2 :: v_dual_cndmask_b32 v8, 0x42, v5"),
            (Lines{"v_dual_mov_b32 v7, v7 :: v_dual_cndmask_b32 v8, 0x42, v5",
                   "v_dual_cndmask_b32 v7, 0x42, v2 :: v_dual_mov_b32 v8, v8"}));
  EXPECT_EQ(without_selects("v_dual_cndmask_b32 v7, 0x42, v2 :: v_dual_add_f32 v8, v4, v5"),
            Lines{"v_dual_mov_b32 v7, v7 :: v_dual_add_f32 v8, v4, v5"});
  EXPECT_EQ(without_selects("v_dual_fmamk_f32 v6, v1, 0x42, v2 :: v_dual_cndmask_b32 v9, v4, v5"),
            Lines{"v_dual_fmamk_f32 v6, v1, 0x42, v2 :: v_dual_mov_b32 v9, v9"});
  EXPECT_EQ(without_selects("v_dual_mul_f32 v0, v1, v2 :: v_dual_add_f32 v3, v4, v5"), Lines{});
}

}  // namespace
}  // namespace wavejit::tests
