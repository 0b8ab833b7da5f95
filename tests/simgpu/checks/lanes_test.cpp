// EXEC where all lanes are needed, and lanes that must agree.
#include "checked.h"

namespace wavejit::simgpu::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr uint32_t lane_checks = static_cast<uint32_t>(Check::exec) | static_cast<uint32_t>(Check::uniform);

TEST(Exec, MatrixInstructionsWithLanesOff) {
  const std::string body = "v_mfma_f32_16x16x16_f16 v[4:7], v[8:9], v[10:11], 0";
  const Assembled partial("s_mov_b64 exec, 0xffff\n" + body);
  const Checked checked = run_checked(partial, {0}, {.checks = lane_checks});
  ASSERT_THAT(checked.names(), ElementsAre("exec"));
  EXPECT_THAT(checked.text(), HasSubstr("EXEC is 0xffff"));
  EXPECT_EQ(checked.findings[0]["lane"], 16);
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
