// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Launches under WAVEJIT_SIM_MATRIX and WAVEJIT_SIM_TRANSCENDENTALS. The tests of tests/simgpu/semantics check the
// result of each instruction under them.
#include <cmath>
#include <string>
#include <utility>

#include "assembled.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "simgpu/machine/wave/wave.h"

namespace wavejit::simgpu::testing {
namespace {

using ::testing::HasSubstr;

// 2^24 + 1 + … + 1, sixteen ones: k ascending rounds each away, groups of eight keep them, a seed may do either; and
// the sum of two lanes' reciprocals of three.
std::pair<float, float> sum_and_reciprocal(const std::string& target) {
  const Assembled kernel(KernelSource{.body = R"(
    s_load_dwordx2 s[4:5], s[0:1], 0x0
    v_mov_b32 v10, 0x3c003c00
    v_mov_b32 v11, v10
    v_mov_b32 v4, 0x4b800000
    v_mov_b32 v5, v4
    v_mov_b32 v6, v4
    v_mov_b32 v7, v4
    s_nop 4
    v_mfma_f32_16x16x16_f16 v[4:7], v[10:11], v[10:11], v[4:7]
    v_cvt_f32_u32 v1, v0
    v_add_f32 v1, 1.0, v1
    v_rcp_f32 v5, v1
    v_lshlrev_b32 v1, 2, v0
    s_nop 10
    s_waitcnt lgkmcnt(0)
    global_store_dword v1, v4, s[4:5]
    global_store_dword v1, v5, s[4:5] offset:256
  )",
                                      .target = target});
  Buffer<float> out(128);
  EXPECT_TRUE(kernel.run({out.address()}).ok());
  float reciprocals = 0;
  for (unsigned lane = 0; lane < 64; ++lane) {
    EXPECT_EQ(out[lane], out[0]) << "equal instructions, equal results";
    reciprocals += std::ldexp(out[64 + lane], static_cast<int>(lane % 7));
  }
  return {out[0], reciprocals};
}

TEST(ArithmeticModes, AddAndRoundAsSettingsSay) {
  const ScopedSettings scope;
  Settings settings = scope.before();
  settings.matrix = MatrixSums::sequential;
  settings.transcendentals = Transcendentals::nearest;
  scope.set(settings);
  const auto [ascending, nearest] = sum_and_reciprocal("gfx942");
  EXPECT_EQ(ascending, 0x1p24F);
  settings.matrix = MatrixSums::cdna3;
  settings.transcendentals = Transcendentals::seeded;
  scope.set(settings);
  const auto [grouped, other] = sum_and_reciprocal("gfx942");
  EXPECT_EQ(grouped, 0x1p24F + 16);
  EXPECT_NE(other, nearest);
  settings.matrix = MatrixSums::seeded;
  bool differs = false;
  for (settings.matrix_seed = 0; settings.matrix_seed < 8; ++settings.matrix_seed) {
    scope.set(settings);
    const float sum = sum_and_reciprocal("gfx950").first;
    EXPECT_GE(sum, ascending);
    EXPECT_LE(sum, grouped);
    differs = differs || sum != ascending;
  }
  EXPECT_TRUE(differs) << "no seed adds C later";
}

TEST(ArithmeticModes, RefuseAModelThatTheTargetHasNot) {
  const ScopedSettings scope;
  Settings settings = scope.before();
  settings.matrix = MatrixSums::cdna3;
  scope.set(settings);
  const Status status = Assembled("s_nop 0").run({0});
  EXPECT_EQ(status.code, hip_error_invalid_value);
  EXPECT_THAT(status.text,
              HasSubstr("WAVEJIT_SIM_MATRIX=cdna3 has no model of gfx950; sequential and seeded:<number> work there"));
  EXPECT_TRUE(Assembled(KernelSource{.body = "s_nop 0", .target = "gfx942"}).run({0}).ok());
}

}  // namespace
}  // namespace wavejit::simgpu::testing
