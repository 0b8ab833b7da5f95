// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Rows of 584 bytes: 448 of 8 bits, 64 of the rope in bf16, and behind all rows of a page their powers of two. Against
// float64, and bit by bit against the keys that they stand for in bf16.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "attention/schedules.h"
#include "attention_latent/latent_run.h"

namespace wavejit::tests {
namespace {

using attention_latent::program::make_latent_arrays;
using attention_latent::program::widened;
using ::testing::HasSubstr;
using ::testing::Not;

class LatentRowExponents : public ::testing::TestWithParam<const char*> {
 protected:
  std::string line_of(const std::string& words) const {
    const bool fnuz = std::string(GetParam()) == "gfx942";
    return "bf16 " + words + " cache=" + (fnuz ? "e4m3_fnuz" : "e4m3") + " row_scales=64";
  }
  LatentOutput run(const LatentArrays& arrays) {
    LatentOutput output = run_latent(engine_.get(), arrays, {});
    EXPECT_EQ(output.status, WAVEJIT_OK) << output.detail << output.reports;
    EXPECT_EQ(output.reports, "");
    EXPECT_TRUE(output.fence_intact) << "something outside O or LSE was written";
    return output;
  }
  // Under three orders of waves.
  void have_the_same_bits(const LatentArrays& arrays, const LatentArrays& wide_arrays) {
    const LatentOutput wide = run(wide_arrays);
    EXPECT_THAT(wide.kernel_spec, Not(HasSubstr("cache=")));
    for (const Schedule& schedule : schedules) {
      set_schedule(schedule.order, schedule.seed);
      const LatentOutput output = run(arrays);
      EXPECT_THAT(output.kernel_spec, HasSubstr(" row_scales=64 "));
      EXPECT_EQ(output, wide);
    }
  }
  void has_bits_of_wide_keys(const std::string& words) {
    const std::string line = line_of(words);
    SCOPED_TRACE(line);
    const LatentArrays arrays = latent_arrays(line);
    have_the_same_bits(arrays, widened(arrays));
  }
  void matches(const std::string& words, std::int64_t step) {
    const std::string line = line_of(words);
    SCOPED_TRACE(line);
    const LatentArrays arrays = latent_arrays(line);
    EXPECT_EQ(wrong_latent(arrays, run(arrays), step), "");
  }

  Engine engine_{GetParam()};
};

TEST_P(LatentRowExponents, HaveTheBitsOfWideKeys) {
  has_bits_of_wide_keys("b2 q2 k200 h12 d512 causal lse k_lengths=200,65");
  has_bits_of_wide_keys("b1 q1 k331 h40 d512 lse");
  has_bits_of_wide_keys("b3 q1 k71 h96 d512 lse sink k_lengths=71,0,64");
  has_bits_of_wide_keys("b3 q2 k90 h10 d512 causal lse layout=packed q_lengths=2,1,2 k_lengths=33,90,0");
}

TEST_P(LatentRowExponents, HaveTheBitsOfWideKeysInPages) {
  for (const char* page : {"1", "16", "64", "192"})
    has_bits_of_wide_keys("b2 q1 k410 h12 d512 causal lse k_lengths=410,67 layout=paged:" + std::string(page));
  has_bits_of_wide_keys("b2 q3 k150 h12 d512 causal layout=paged:64 q_lengths=1,3 k_lengths=150,0 lse");
}

TEST_P(LatentRowExponents, HaveTheBitsOfWideKeysOverChunks) {
  for (const char* splits : {"1", "3"}) has_bits_of_wide_keys("b1 q1 k2100 h16 d512 lse splits=" + std::string(splits));
  has_bits_of_wide_keys("b2 q1 k1300 h9 d512 lse softcap=20 sink layout=paged:64 splits=2");
}

TEST_P(LatentRowExponents, HaveTheBitsOfWideKeysThatListsName) {
  has_bits_of_wide_keys("b2 q2 k400 h16 d512 causal lse k_lengths=400,40 top_k=300:mixed");
  has_bits_of_wide_keys("b1 q1 k900 h8 d512 lse layout=paged:64 top_k=700");
  has_bits_of_wide_keys("b1 q1 k150 h40 d512 lse top_k=70:slots:mixed");
  has_bits_of_wide_keys("b2 q1 k90 h16 d512 lse sink layout=paged:16 top_k=20:slots:mixed second_top_k=50");
}

// Keys that are subnormal in bf16, rounded to it: nothing else is in those columns of O.
TEST_P(LatentRowExponents, HaveTheBitsOfWideKeysWhereExponentsAreLeast) {
  const std::string line = line_of("b1 q1 k130 h16 d512 lse");
  const auto arrays = make_latent_arrays("attention_latent " + line, false, true);
  ASSERT_TRUE(arrays);
  have_the_same_bits(*arrays, widened(*arrays));
  const LatentOutput output = run(*arrays);
  EXPECT_NE(output.o.at(0) & 0x7FFF, 0);
  EXPECT_LT(output.o.at(0) & 0x7FFF, 0x80) << "no subnormal number";
}

// 0xFF is NaN: of a key that is seen it makes its rows NaN, all 512 columns of them, and no other sequence's.
TEST_P(LatentRowExponents, OfNoNumberMakeTheirRowsNan) {
  LatentArrays arrays = latent_arrays(line_of("b2 q1 k64 h16 d512"));
  const LatentOutput before = run(arrays);
  constexpr std::size_t rows = 64;
  constexpr std::size_t key = 5;
  constexpr std::size_t group = 3;
  arrays.k_bytes[(rows * 576) + (key * 8) + group] = 0xFF;
  const LatentOutput output = run(arrays);
  ASSERT_EQ(output.o.size(), before.o.size());
  const std::size_t of_sequence = output.o.size() / 2;
  for (std::size_t i = 0; i < output.o.size(); ++i)
    if (i < of_sequence)
      ASSERT_GT(output.o[i] & 0x7FFF, 0x7F80) << i;
    else
      ASSERT_EQ(output.o[i], before.o[i]) << i;
}

TEST_P(LatentRowExponents, MatchFloat64) {
  matches("b2 q2 k150 h12 d512 causal lse sink k_lengths=150,67", 5);
  matches("b1 q1 k1100 h24 d512 lse splits=2", 7);
  matches("b3 q2 k90 h10 d512 causal lse softcap=20 sink layout=packed q_lengths=2,1,2 k_lengths=33,90,0", 3);
  matches("b2 q1 k300 h128 d512 lse layout=paged:64 top_k=200:slots:mixed", 5);
}

INSTANTIATE_TEST_SUITE_P(Targets, LatentRowExponents, ::testing::Values("gfx942", "gfx950"),
                         [](const auto& parameter) { return std::string(parameter.param); });

TEST(LatentRowExponentsRefusals, NameTheField) {
  const Engine engine("gfx950");
  const LatentArrays rows = latent_arrays("bf16 b2 q1 k70 h16 d512 cache=e4m3 row_scales=64");
  const auto refused = [&](const std::string& field, const std::string& why, const ChangeLatentCall& change) {
    const LatentOutput output = run_latent(engine.get(), rows, change);
    EXPECT_NE(output.status, WAVEJIT_OK) << field;
    EXPECT_THAT(output.detail, HasSubstr(field));
    EXPECT_THAT(output.detail, HasSubstr(why));
  };
  refused("q.dtype", "whose rope is in bf16", [](auto& call) { call.q.dtype = call.o.dtype = WAVEJIT_FP16; });
  refused("k.dtype", "e4m3", [](auto& call) { call.k.dtype = WAVEJIT_E5M2; });
  refused("k.dtype", "Open Compute Project", [](auto& call) { call.k.dtype = WAVEJIT_E4M3_FNUZ; });
  refused("row_scales = 0", "rows that end in their own exponents have the same shape",
          [](auto& call) { call.scales.row_scales = WAVEJIT_ROWS_AS_TYPED; });
  refused("row_scales = 1", "2 (WAVEJIT_EXPONENTS_BEHIND_ROWS",
          [](auto& call) { call.scales.row_scales = WAVEJIT_SCALES_IN_ROWS; });
  refused("row_scales = 2", "0 (WAVEJIT_ROWS_AS_TYPED) beside k of 4 (e4m3) with 512 columns",
          [](auto& call) { call.k.sizes[3] = 512; });
  refused("k.strides[1]", "584", [](auto& call) { call.k.strides[1] = 592; });
  refused("k.strides[0]", "16", [](auto& call) { call.k.strides[0] += 8; });
  refused("k_scale.data", "scales of their own",
          [](auto& call) { call.scales.k_scale = wavejit_dense_tensor(call.q.data, WAVEJIT_FP32, 1, 1, 1, 1); });
  refused("k_rope.data", "which have the rope",
          [](auto& call) { call.k_rope = wavejit_dense_tensor(call.k.data, WAVEJIT_E4M3, 2, 70, 1, 64); });
}

}  // namespace
}  // namespace wavejit::tests
