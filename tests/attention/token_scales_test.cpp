// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Scales that each token of each kv head has for itself: powers of two give the bits of the 16-bit kernel over what K
// and V count for; any others are held against float64, and against themselves however the call is made.
#include <gtest/gtest.h>

#include <cmath>
#include <format>
#include <limits>
#include <string>
#include <vector>

#include "attention/modified.h"
#include "support/byte_floats.h"
#include "support/part.h"

namespace wavejit::tests {
namespace {

enum class Numbers : std::uint8_t { powers_of_two, any, of_either_sign };

class TokenScales : public ::testing::TestWithParam<std::string> {
 protected:
  // NaN where no key is. Integers reach as far as numbers do.
  AttentionCase stored(AttentionCase which, Numbers numbers, bool integers = false) const {
    const AttentionInputs& in = which.inputs;
    StoredBytes bytes{.type = integers ? WAVEJIT_INT8 : GetParam() == "gfx942" ? WAVEJIT_E4M3_FNUZ : WAVEJIT_E4M3};
    const float step = integers ? 1.0F / 32 : 1.0F;
    bytes.tokens = true;
    const std::size_t rows = std::size_t(in.key_batches()) * in.key_rows();
    bytes.k_scale.assign(rows * in.kv_heads, std::numeric_limits<float>::quiet_NaN());
    bytes.v_scale = bytes.k_scale;
    for (int b = 0; b < in.batch; ++b)
      for (int j = 0; j < in.keys(b); ++j)
        for (int h = 0; h < in.kv_heads; ++h) {
          const int number = (5 * j) + (3 * h) + b;
          const std::size_t at = (std::size_t(in.first_key(b) + j) * in.kv_heads) + h;
          const bool powers = numbers == Numbers::powers_of_two;
          const float sign = numbers == Numbers::of_either_sign && number % 3 == 0 ? -1.0F : 1.0F;
          bytes.k_scale[at] = sign * step *
                              (powers ? std::exp2(static_cast<float>(number % 3) - 1)
                                      : 0.5F + (0.0625F * static_cast<float>(number % 16)));
          bytes.v_scale[at] = step * (powers ? std::exp2(1 - static_cast<float>(number % 4))
                                             : 1.5F - (0.0625F * static_cast<float>(number % 15)));
        }
    return stored_in_bytes(std::move(which), std::move(bytes));
  }
  AttentionOutput run(const AttentionCase& which, wavejit_simgpu_schedule schedule = WAVEJIT_SIMGPU_REVERSE) {
    set_schedule(schedule, 3);
    AttentionOutput output = run_attention(engine_.get(), which);
    EXPECT_EQ(output.status, WAVEJIT_OK) << output.detail << output.reports;
    EXPECT_EQ(output.reports, "");
    EXPECT_TRUE(output.fence_intact);
    return output;
  }
  static void expect_equal(const AttentionOutput& one, const AttentionOutput& other) {
    EXPECT_TRUE(one.o == other.o) << "O differs: " << one.kernel_spec;
    EXPECT_TRUE(bits_of(one.lse) == bits_of(other.lse)) << "LSE differs: " << one.kernel_spec;
  }
  void expect_bits_of_wide_keys(const AttentionCase& which) {
    const AttentionOutput output = run(which);
    EXPECT_TRUE(output.kernel_spec.contains(" cache_scales=token")) << output.kernel_spec;
    expect_equal(output, run(widened(which)));
  }
  // Against float64, and the same bits under other schedules.
  void expect_exact(const AttentionCase& which) {
    const AttentionOutput output = run(which);
    EXPECT_EQ(compare_rows(which, attention_reference(which.inputs), output).wrong(), "");
    for (const wavejit_simgpu_schedule schedule : {WAVEJIT_SIMGPU_IN_ORDER, WAVEJIT_SIMGPU_RANDOM})
      expect_equal(run(which, schedule), output);
  }

  Engine engine_{GetParam()};
  Pipelines pipelines_{GetParam()};
};

TEST_P(TokenScales, PowersOfTwoHaveTheBitsOfWideKeys) {
  int index = 0;
  for (const int rows : {1, 5, 70, 300}) {
    if (!in_part(index++, 2)) continue;
    SCOPED_TRACE(rows);
    AttentionCase which = make_case(Storage::bf16, 2, rows, 331, 8, 2, 128, rows != 1, 7);
    expect_bits_of_wide_keys(stored(which, Numbers::powers_of_two, rows == 5));
    which.inputs.key_lengths = {331, 77};
    which.pages = Pages{.size = rows == 5 ? 1 : 16, .heads_first = rows == 70, .in_turn = rows == 1, .list = rows == 5};
    expect_bits_of_wide_keys(stored(which, Numbers::powers_of_two, rows == 70));
  }
}

TEST_P(TokenScales, HowACallIsMadeShowsInNoBit) {
  AttentionCase which = make_case(Storage::bf16, 2, 3, 1100, 4, 2, 64, true, 9);
  which.inputs.key_lengths = {1100, 700};
  add_sink(which, 0.5);
  which.inputs.softcap = 8;
  which = stored(which, Numbers::any);
  const AttentionOutput whole = run(which);
  which.splits = 2;
  const AttentionOutput split = run(which);
  EXPECT_TRUE(split.kernel_spec.contains(" split=1024")) << split.kernel_spec;
  expect_equal(split, whole);
  int index = 0;
  for (const int size : {1, 16, 48, 64}) {
    if (!in_part(index++, 2)) continue;
    SCOPED_TRACE(size);
    which.pages = Pages{.size = size, .heads_first = size == 48, .in_turn = size == 64};
    for (const int splits : {1, 2}) {
      which.splits = splits;
      which.first_keys = {};
      expect_equal(run(which), whole);
      which.first_keys = {130, 5};
      expect_equal(run(which), whole);
    }
  }
}

TEST_P(TokenScales, AnyNumbersMatchFloat64) {
  AttentionCase which = make_case(Storage::bf16, 2, 40, 200, 4, 2, 128, true, 11);
  expect_exact(stored(which, Numbers::any));
  expect_exact(stored(which, Numbers::any, true));
  add_alibi(which, 1);
  which.inputs.scale = -0.2;
  which.output_fp32 = true;
  expect_exact(stored(which, Numbers::any));
}

// Those that overlap tiles, too, under every schedule and against float64.
TEST_P(TokenScales, EveryPipelineHasTheSameBits) {
  const auto check = [&](const AttentionCase& which, bool integers) {
    pipelines_.check(stored(which, Numbers::any, integers));
    pipelines_.check(stored(which, Numbers::powers_of_two, integers));
  };
  check(make_case(Storage::bf16, 1, 300, 1100, 2, 1, 128, true, 17), false);
  AttentionCase which = make_case(Storage::fp16, 2, 270, 200, 2, 1, 64, false, 19);
  which.inputs.key_lengths = {200, 77};
  which.inputs.window = true;
  which.inputs.window_left = 50;
  which.inputs.window_right = 3;
  check(which, true);
  which = make_case(Storage::bf16, 1, 300, 331, 4, 2, 128, true, 21);
  which.inputs.softcap = 8;
  add_alibi(which, 1);
  add_sink(which, 0.5);
  check(which, false);
}

// −inf of a key that is hidden stays so.
TEST_P(TokenScales, HiddenKeysHaveScalesOfEitherSign) {
  AttentionCase which = make_case(Storage::bf16, 2, 300, 331, 2, 1, 128, true, 23);
  which.inputs.key_lengths = {331, 77};
  expect_exact(stored(which, Numbers::of_either_sign));
  pipelines_.check(stored(which, Numbers::of_either_sign, true));
}

// A wave looks up the page of a tile, and of its scales.
TEST_P(TokenScales, PagesOfWholeTilesHaveTheBitsOfOthers) {
  const bool overlaps = GetParam() == "gfx950";
  for (const int head_dim : {64, 128}) {
    AttentionCase which = make_case(Storage::bf16, 2, 300, 1230, 2, 1, head_dim, true, 25);
    which.inputs.key_lengths = {1230, 77};
    const AttentionCase dense = stored(which, Numbers::any, head_dim == 64);
    const AttentionOutput expected = run_attention(pipelines_.generic().get(), dense);
    expect_equal(run(dense), expected);
    for (const int size : {64, 192}) {
      SCOPED_TRACE(size);
      AttentionCase paged = dense;
      paged.pages = Pages{.size = size, .heads_first = size == 64, .list = size == 192};
      const AttentionOutput output = run(paged);
      EXPECT_EQ(output.kernel_spec.contains(" whole_tiles pipeline=dualwave"), overlaps) << output.kernel_spec;
      expect_equal(output, expected);
      for (const wavejit_simgpu_schedule schedule : {WAVEJIT_SIMGPU_IN_ORDER, WAVEJIT_SIMGPU_RANDOM})
        expect_equal(run(paged, schedule), expected);
    }
  }
}

TEST_P(TokenScales, OneThatIsWrongShows) {
  AttentionCase which = stored(make_case(Storage::bf16, 1, 1, 70, 2, 1, 64, false, 13), Numbers::any);
  const AttentionOutput right = run(which);
  const AttentionAnswer exact = attention_reference(which.inputs);
  for (const bool of_k : {true, false})
    for (const int key : {0, 37, 69}) {
      // The tensors stay: what the call is told of one number is not what the bytes were made with.
      AttentionCase wrong = which;
      std::vector<float>& scales = of_k ? wrong.bytes->k_scale : wrong.bytes->v_scale;
      std::vector<float>& values = of_k ? wrong.inputs.k : wrong.inputs.v;
      scales[static_cast<std::size_t>(key)] *= 8;
      for (std::size_t c = 0; c < 64; ++c) values[(static_cast<std::size_t>(key) * 64) + c] *= 8;
      const AttentionOutput output = run(wrong);
      EXPECT_FALSE(output.o == right.o);
      EXPECT_EQ(bits_of(output.lse) == bits_of(right.lse), !of_k);
      EXPECT_NE(compare_rows(which, exact, output).wrong(), "");
    }
}

TEST_P(TokenScales, RefusedByName) {
  const AttentionCase which = stored(make_case(Storage::bf16, 2, 1, 70, 4, 2, 64, false, 15), Numbers::any);
  const auto refused = [&](const std::string& expected, const ChangeForwardCall& change) {
    const AttentionOutput output = run_attention(engine_.get(), which, change);
    EXPECT_EQ(output.status, WAVEJIT_INVALID_ARGUMENT) << expected;
    EXPECT_TRUE(output.detail.starts_with(expected)) << output.detail;
  };
  refused("k_scale.data = null", [](auto& call) { call.k_scale.data = nullptr; });
  refused("v_scale.data = null", [](auto& call) { call.v_scale.data = nullptr; });
  refused("k_scale.sizes[1]", [](auto& call) { call.k_scale.sizes[1] = 1; });
  refused("v_scale.sizes[2]", [](auto& call) { call.v_scale.sizes[2] = 4; });
  refused("k_scale.sizes[0]", [](auto& call) { call.k_scale.sizes[0] = 3; });
  refused("v_scale.strides[1]", [](auto& call) { call.v_scale.strides[1] = std::int64_t{1} << 31; });
  refused("k_scale.dtype", [](auto& call) { call.k_scale.dtype = WAVEJIT_FP16; });
  refused("token_scales = 2", [](auto& call) { call.token_scales = 2; });
  refused("k_scale.sizes[1]", [](auto& call) { call.token_scales = 0; });
  refused("token_scales = 1; accepted: 0 beside", [](auto& call) { call.k.dtype = call.v.dtype = WAVEJIT_BF16; });
}

INSTANTIATE_TEST_SUITE_P(All, TokenScales, ::testing::Values("gfx942", "gfx950"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace wavejit::tests
