// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Barriers that a wave never comes to.
#include "checked.h"

namespace wavejit::simgpu::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(Barriers, AWaveThatEndsWhileTheOthersWait) {
  const Assembled kernel(R"(
  v_readfirstlane_b32 s8, v0
  s_cmp_lg_u32 s8, 64
  s_cbranch_scc0 over
  s_barrier
over:)");
  const Checked checked =
      run_checked(kernel, {0}, {.checks = static_cast<std::uint32_t>(Check::barriers), .threads = 192});
  ASSERT_THAT(checked.names(), ElementsAre("barriers"));
  EXPECT_THAT(checked.findings[0].text, HasSubstr("wave 1 ended without reaching this barrier"));
}

TEST(Barriers, AllOfThem) {
  const Assembled kernel("s_barrier\ns_barrier");
  EXPECT_THAT(run_checked(kernel, {0}, {.threads = 192}).findings, IsEmpty());
}

}  // namespace
}  // namespace wavejit::simgpu::testing
