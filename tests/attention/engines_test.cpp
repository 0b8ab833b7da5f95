// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Whole kernels on both engines of the simulated GPU: the same bits, the same number of instructions.
#include <gtest/gtest.h>

#include <cstring>
#include <stdexcept>

#include "support/attention_run.h"

namespace wavejit::tests {
namespace {

wavejit_simgpu_counters counters() {
  wavejit_simgpu_counters now{};
  now.size = sizeof now;
  wavejit_simgpu_get_counters(&now);
  return now;
}

void choose(wavejit_simgpu_engine engine, wavejit_simgpu_schedule schedule) {
  wavejit_simgpu_settings settings{};
  settings.size = sizeof settings;
  wavejit_simgpu_get_settings(&settings);
  settings.schedule = schedule;
  settings.seed = 11;
  settings.checks = 0;
  settings.arrival = WAVEJIT_SIMGPU_ARRIVES_EARLY;
  settings.engine = engine;
  settings.translate_after = 2;
  if (wavejit_simgpu_set_settings(&settings) != 0) throw std::runtime_error("the simulated GPU refused its settings");
}

void expect_same_bits(Engine& engine, const AttentionCase& which) {
  for (const auto schedule : {WAVEJIT_SIMGPU_IN_ORDER, WAVEJIT_SIMGPU_RANDOM}) {
    choose(WAVEJIT_SIMGPU_INTERPRET, schedule);
    const auto before = counters();
    const AttentionOutput interpreted = run_attention(engine.get(), which);
    const auto between = counters();
    choose(WAVEJIT_SIMGPU_COMPILE, schedule);
    const AttentionOutput compiled = run_attention(engine.get(), which);
    const auto after = counters();
    ASSERT_EQ(interpreted.status, WAVEJIT_OK) << interpreted.detail;
    ASSERT_EQ(compiled.status, WAVEJIT_OK) << compiled.detail;
    EXPECT_TRUE(compiled.o == interpreted.o);
    ASSERT_EQ(compiled.lse.size(), interpreted.lse.size());
    EXPECT_EQ(std::memcmp(compiled.lse.data(), interpreted.lse.data(), compiled.lse.size() * sizeof(float)), 0);
    EXPECT_TRUE(compiled.fence_intact);
    EXPECT_EQ(compiled.reports, "");
    EXPECT_EQ(after.wave_instructions - between.wave_instructions,
              between.wave_instructions - before.wave_instructions);
    EXPECT_EQ(after.matrix_instructions - between.matrix_instructions,
              between.matrix_instructions - before.matrix_instructions);
    if (schedule == WAVEJIT_SIMGPU_IN_ORDER) {
      EXPECT_GT(after.translated_instructions, between.translated_instructions) << "nothing was translated";
    }
  }
  choose(WAVEJIT_SIMGPU_INTERPRET, WAVEJIT_SIMGPU_IN_ORDER);
}

class Engines : public ::testing::TestWithParam<std::string> {};

TEST_P(Engines, GiveTheSameBits) {
  Engine engine(GetParam());
  {
    SCOPED_TRACE("fp16, D = 128, causal");
    expect_same_bits(engine, make_case(Storage::fp16, 1, 200, 333, 2, 1, 128, true, 21));
  }
  {
    SCOPED_TRACE("bf16, D = 64");
    expect_same_bits(engine, make_case(Storage::bf16, 1, 129, 257, 2, 2, 64, false, 22, 3.0));
  }
}

INSTANTIATE_TEST_SUITE_P(All, Engines, ::testing::Values("gfx942", "gfx950", "gfx1201"));

}  // namespace
}  // namespace wavejit::tests
