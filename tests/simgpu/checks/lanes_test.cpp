// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// EXEC where all lanes are needed, and lanes that must agree.
#include "checked.h"

namespace wavejit::simgpu::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::uint32_t lane_checks =
    static_cast<std::uint32_t>(Check::exec) | static_cast<std::uint32_t>(Check::uniform);

TEST(Exec, MatrixInstructionsWithLanesOff) {
  const std::string body = "v_mfma_f32_16x16x16_f16 v[4:7], v[8:9], v[10:11], 0";
  const Assembled partial("s_mov_b64 exec, 0xffff\n" + body);
  const Checked checked = run_checked(partial, {0}, {.checks = lane_checks});
  ASSERT_THAT(checked.names(), ElementsAre("exec"));
  EXPECT_THAT(checked.text(), HasSubstr("EXEC is 0xffff"));
  EXPECT_EQ(checked.findings[0].lane, 16);
  EXPECT_THAT(run_checked(Assembled(body), {0}, {.checks = lane_checks}).findings, IsEmpty());
}

TEST(Uniform, TheFirstLaneSpeaksForOthersThatDiffer) {
  const Assembled kernel("v_readfirstlane_b32 s8, v0");
  const Checked checked = run_checked(kernel, {0}, {.checks = lane_checks});
  ASSERT_THAT(checked.names(), ElementsAre("uniform"));
  EXPECT_THAT(checked.text(), HasSubstr("lane 0 speaks for all and holds 0x0; lane 1 holds 0x1"));
}

TEST(Uniform, LanesThatAreOffDoNotCount) {
  const Assembled kernel("s_mov_b64 exec, 4\nv_readfirstlane_b32 s8, v0");
  EXPECT_THAT(run_checked(kernel, {0}, {.checks = lane_checks}).findings, IsEmpty());
}

// What a compiler writes around an atomic that one lane does for all: the others' v2 is whatever was there.
TEST(Uniform, LanesThatWereNotWrittenWithTheFirstOneDoNotCount) {
  const std::string one_lane =
      "v_mov_b32 v2, v0\ns_mov_b64 s[10:11], exec\ns_mov_b64 exec, 1\nv_mov_b32 v2, 7\n"
      "s_mov_b64 exec, s[10:11]\n";
  EXPECT_THAT(run_checked(Assembled(one_lane + "v_readfirstlane_b32 s8, v2"), {0}, {.checks = lane_checks}).findings,
              IsEmpty());
  // The first lane's value is the older one here: the others were given theirs afterwards.
  const Assembled others(
      "v_mov_b32 v2, 7\ns_mov_b64 exec, 2\nv_mov_b32 v2, 8\ns_mov_b64 exec, 3\n"
      "v_readfirstlane_b32 s8, v2");
  EXPECT_THAT(run_checked(others, {0}, {.checks = lane_checks}).names(), ElementsAre("uniform"));
}

// The number of a wave: the first work-item's id, and then a shift, a mask or a field. Bits 0 to 5 differ.
TEST(Uniform, BitsThatNobodyLooksAtMayDiffer) {
  const auto names = [](const std::string& uses) {
    return run_checked(Assembled("v_readfirstlane_b32 s8, v0\n" + uses), {0}, {.checks = lane_checks}).names();
  };
  EXPECT_THAT(names("s_lshr_b32 s9, s8, 6"), IsEmpty());
  EXPECT_THAT(names("s_and_b32 s9, s8, 0xc0\ns_bfe_u32 s10, s8, 0x30006\ns_ashr_i32 s8, s8, 6\ns_mov_b32 s9, s8"),
              IsEmpty());
  // A shift passes on what its own readers look at (Triton's code for a wave's offset).
  EXPECT_THAT(names("s_lshr_b32 s9, s8, 5\ns_and_b32 s9, s9, 6"), IsEmpty());
  EXPECT_THAT(names("s_lshr_b32 s9, s8, 5\ns_and_b32 s9, s9, 7"), ElementsAre("uniform"));
  EXPECT_THAT(names("s_lshl_b32 s9, s8, 2\ns_bitcmp0_b32 s8, 7\ns_and_b32 s9, s9, 0x100"), IsEmpty());
  EXPECT_THAT(names("s_lshl_b32 s9, s8, 2\ns_and_b32 s9, s9, 0x80"), ElementsAre("uniform"));
  EXPECT_THAT(names("s_lshl_b32 s9, s8, 2\ns_add_u32 s9, s9, 1"), ElementsAre("uniform"));
  EXPECT_THAT(names("s_bitcmp1_b32 s8, 5"), ElementsAre("uniform"));
  EXPECT_THAT(names("s_lshr_b32 s9, s8, 5"), ElementsAre("uniform"));
  EXPECT_THAT(names("s_bfe_u32 s9, s8, 0x30005"), ElementsAre("uniform"));
  EXPECT_THAT(names("s_and_b32 s9, s8, 0xe0"), ElementsAre("uniform"));
  EXPECT_THAT(names("s_lshr_b32 s9, s8, 6\ns_add_u32 s10, s8, 1"), ElementsAre("uniform"));
  EXPECT_THAT(names("s_lshr_b32 s9, s8, 6\nv_mov_b32 v1, s8"), ElementsAre("uniform"));
}

TEST(Uniform, WaterfallLoopsAreMeantToDiffer) {
  const Assembled kernel(R"(
  s_mov_b64 s[10:11], exec
again:
  v_readfirstlane_b32 s8, v0
  v_cmp_eq_u32 vcc, s8, v0
  s_and_saveexec_b64 s[12:13], vcc
  s_xor_b64 exec, s[12:13], exec
  s_cbranch_execnz again)");
  EXPECT_THAT(run_checked(kernel, {0}, {.checks = lane_checks}).findings, IsEmpty());
}

}  // namespace
}  // namespace wavejit::simgpu::testing
