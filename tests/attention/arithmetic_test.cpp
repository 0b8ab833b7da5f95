// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Matrix units that add in other ways, and transcendental instructions that give other permitted results: accuracy,
// bits between pipelines and engines, and rows alone or among others hold under each (docs/simulated-gpu.md,
// "Arithmetic that documents leave open"). A sample; CMakeLists.txt has the whole of it in soak.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <format>
#include <stdexcept>
#include <string>
#include <tuple>

#include "support/attention_run.h"

namespace wavejit::tests {
namespace {

struct Arithmetic {
  const char* name;
  const char* target;
  wavejit_simgpu_matrix matrix;
  wavejit_simgpu_transcendentals transcendentals;
  const char* pipeline;  // the target's fast one
};
constexpr Arithmetic modes[] = {
    {"cdna3", "gfx942", WAVEJIT_SIMGPU_MATRIX_CDNA3, WAVEJIT_SIMGPU_TRANSCENDENTALS_NEAREST, "interleaved"},
    {"cdna3_and_seeded", "gfx942", WAVEJIT_SIMGPU_MATRIX_CDNA3, WAVEJIT_SIMGPU_TRANSCENDENTALS_SEEDED, "interleaved"},
    {"seeded_gfx942", "gfx942", WAVEJIT_SIMGPU_MATRIX_SEEDED, WAVEJIT_SIMGPU_TRANSCENDENTALS_SEEDED, "interleaved"},
    {"seeded_gfx950", "gfx950", WAVEJIT_SIMGPU_MATRIX_SEEDED, WAVEJIT_SIMGPU_TRANSCENDENTALS_SEEDED, "dualwave"},
};

void choose(wavejit_simgpu_matrix matrix, wavejit_simgpu_transcendentals transcendentals, std::uint64_t seed,
            wavejit_simgpu_engine engine = WAVEJIT_SIMGPU_INTERPRET) {
  wavejit_simgpu_settings settings{};
  settings.size = sizeof settings;
  wavejit_simgpu_get_settings(&settings);
  settings.matrix = matrix;
  settings.matrix_seed = seed;
  settings.transcendentals = transcendentals;
  settings.transcendentals_seed = seed;
  settings.engine = engine;
  settings.translate_after = 2;
  if (wavejit_simgpu_set_settings(&settings) != 0) throw std::runtime_error("the simulated GPU refused its settings");
}

AttentionOutput run(const Engine& engine, const AttentionCase& which) {
  AttentionOutput output = run_attention(engine.get(), which);
  EXPECT_EQ(output.status, WAVEJIT_OK) << output.detail << output.reports;
  EXPECT_EQ(output.reports, "");
  EXPECT_TRUE(output.fence_intact);
  return output;
}

void expect_same_bits(const AttentionOutput& one, const AttentionOutput& other) {
  EXPECT_TRUE(one.o == other.o);
  ASSERT_EQ(one.lse.size(), other.lse.size());
  EXPECT_EQ(std::memcmp(one.lse.data(), other.lse.data(), one.lse.size() * sizeof(float)), 0);
}

using Combination = std::tuple<Arithmetic, Storage>;

class ArithmeticModes : public ::testing::TestWithParam<Combination> {
 protected:
  static const Arithmetic& mode() { return std::get<0>(GetParam()); }
  static Storage storage() { return std::get<1>(GetParam()); }
  static void choose_mode(wavejit_simgpu_engine engine = WAVEJIT_SIMGPU_INTERPRET) {
    choose(mode().matrix, mode().transcendentals, 7, engine);
  }
  static wavejit_engine_options with_pipeline(const char* pipeline) {
    wavejit_engine_options options{};
    options.pipeline = pipeline;
    return options;
  }
  void TearDown() override { choose(WAVEJIT_SIMGPU_MATRIX_SEQUENTIAL, WAVEJIT_SIMGPU_TRANSCENDENTALS_NEAREST, 1); }
  Engine fast_{mode().target, with_pipeline(mode().pipeline)};
  Engine generic_{mode().target, with_pipeline("generic")};
};

TEST_P(ArithmeticModes, StayWithinTheBoundsWithOtherBits) {
  AttentionCase which = make_case(storage(), 1, 100, 200, 2, 1, 128, true, 51);
  const AttentionAnswer exact = attention_reference(which.inputs);
  const AttentionOutput usual = run(fast_, which);
  choose_mode();
  const AttentionOutput output = run(fast_, which);
  EXPECT_EQ(compare_rows(which, exact, output).wrong(), "");
  EXPECT_NE(output.lse, usual.lse) << "the mode changed nothing";
  EXPECT_NE(output.o, usual.o) << "the mode changed nothing";
  expect_same_bits(run(generic_, which), output);
  choose_mode(WAVEJIT_SIMGPU_COMPILE);
  expect_same_bits(run(fast_, which), output);
}

// The sign of Q is flipped for it (docs/canonical-arithmetic.md, "Scale").
TEST_P(ArithmeticModes, HoldForNegativeScales) {
  AttentionCase which = make_case(storage(), 1, 33, 130, 1, 1, 64, false, 52);
  which.inputs.scale = -which.inputs.scale;
  choose_mode();
  const AttentionOutput output = run(fast_, which);
  EXPECT_EQ(compare_rows(which, attention_reference(which.inputs), output).wrong(), "");
  expect_same_bits(run(generic_, which), output);
}

// Rows of a causal prefill, each as a decode step over the keys that it sees.
TEST_P(ArithmeticModes, GiveARowTheSameBitsAloneOrAmongOthers) {
  constexpr int head_dim = 64;
  const AttentionCase whole = make_case(storage(), 1, 140, 140, 1, 1, head_dim, true, 53);
  choose_mode();
  const AttentionOutput all = run(fast_, whole);
  for (const int row : {0, 63, 64, 130}) {
    AttentionCase alone = whole;
    alone.inputs.query_length = 1;
    alone.inputs.key_length = row + 1;
    alone.inputs.q.assign(whole.inputs.q.begin() + row * head_dim, whole.inputs.q.begin() + (row + 1) * head_dim);
    alone.inputs.k.resize(std::size_t(row + 1) * head_dim);
    alone.inputs.v.resize(std::size_t(row + 1) * head_dim);
    const AttentionOutput one = run(fast_, alone);
    EXPECT_TRUE(std::equal(one.o.begin(), one.o.end(), all.o.begin() + row * head_dim)) << "row " << row;
    EXPECT_EQ(one.lse[0], all.lse[row]) << "row " << row;
  }
}

INSTANTIATE_TEST_SUITE_P(All, ArithmeticModes,
                         ::testing::Combine(::testing::ValuesIn(modes),
                                            ::testing::Values(Storage::fp16, Storage::bf16)),
                         [](const ::testing::TestParamInfo<Combination>& info) {
                           return std::format("{}_{}", std::get<0>(info.param).name,
                                              std::get<1>(info.param) == Storage::fp16 ? "fp16" : "bf16");
                         });

// A model of one target's matrix unit is no evidence for another's.
TEST(ArithmeticMode, RefuseAModelThatTheTargetHasNot) {
  choose(WAVEJIT_SIMGPU_MATRIX_CDNA3, WAVEJIT_SIMGPU_TRANSCENDENTALS_NEAREST, 1);
  const Engine engine("gfx950");
  const AttentionOutput output = run_attention(engine.get(), make_case(Storage::fp16, 1, 1, 1, 1, 1, 64, false, 1));
  choose(WAVEJIT_SIMGPU_MATRIX_SEQUENTIAL, WAVEJIT_SIMGPU_TRANSCENDENTALS_NEAREST, 1);
  EXPECT_NE(output.status, WAVEJIT_OK);
  wavejit_simgpu_settings settings{};
  settings.size = sizeof settings;
  wavejit_simgpu_get_settings(&settings);
  settings.matrix = WAVEJIT_SIMGPU_MATRIX_SEEDED + 1;
  EXPECT_NE(wavejit_simgpu_set_settings(&settings), 0);
}

}  // namespace
}  // namespace wavejit::tests
