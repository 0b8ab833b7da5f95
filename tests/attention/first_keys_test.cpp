// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Left padding, bit by bit against the same keys where nothing stands before them. The padding is NaN. Against float64
// it is rows of value_rows.txt.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "attention/modified.h"

namespace wavejit::tests {
namespace {

using Firsts = std::vector<std::int32_t>;

class FirstKeys : public ::testing::TestWithParam<std::string> {
 protected:
  static AttentionCase make(Storage storage, int queries, const std::vector<std::int32_t>& keys, int dim, int heads,
                            int kv_heads, bool causal, std::uint64_t seed) {
    AttentionCase which = make_case(storage, static_cast<int>(keys.size()), queries, std::ranges::max(keys), heads,
                                    kv_heads, dim, causal, seed);
    which.inputs.key_lengths = keys;
    return which;
  }

  AttentionOutput unpadded(const AttentionCase& which) {
    set_schedule(WAVEJIT_SIMGPU_IN_ORDER, 1);
    AttentionOutput output = run_attention(engine_.get(), which);
    EXPECT_EQ(output.status, WAVEJIT_OK) << output.detail;
    return output;
  }

  AttentionOutput run_checked(const AttentionCase& which) {
    set_schedule(WAVEJIT_SIMGPU_REVERSE, 1);
    AttentionOutput output = run_attention(engine_.get(), which);
    EXPECT_EQ(output.status, WAVEJIT_OK) << output.detail;
    EXPECT_EQ(output.reports, "");
    EXPECT_TRUE(output.fence_intact);
    return output;
  }

  static void expect_equal(const AttentionOutput& padded, const AttentionOutput& same) {
    EXPECT_NE(padded.kernel_spec.find(" first_keys "), std::string::npos) << padded.kernel_spec;
    EXPECT_TRUE(padded.o == same.o) << "O differs: " << padded.kernel_spec;
    EXPECT_TRUE(bits_of(padded.lse) == bits_of(same.lse)) << "LSE differs: " << padded.kernel_spec;
  }

  // Once, with every check.
  void expect_bits_of(const AttentionOutput& same, AttentionCase which, const Firsts& firsts) {
    which.first_keys = firsts;
    expect_equal(run_checked(which), same);
  }

  Engine engine_{GetParam()};
};

TEST_P(FirstKeys, PadsOfEverySizeChangeNoBit) {
  const AttentionCase which = make(Storage::bf16, 1, {130, 64}, 64, 4, 1, true, 3);
  const AttentionOutput same = unpadded(which);
  for (const std::int32_t padding : {0, 1, 15, 16, 63, 65, 130, 1170})
    expect_bits_of(same, which, {padding, padding + 66});
}

TEST_P(FirstKeys, KeysInPages) {
  AttentionCase which = make(Storage::bf16, 5, {0, 77, 200}, 128, 4, 1, true, 4);
  const AttentionOutput same = unpadded(which);
  for (const int size : {1, 16, 48, 528}) {
    which.pages = Pages{.size = size, .heads_first = size == 16, .in_turn = size == 48, .list = size != 16};
    expect_bits_of(same, which, {5, 17, 130});
  }
  which.pages = Pages{.size = 16};
  expect_bits_of(same, which, {48, 16, 0});
}

TEST_P(FirstKeys, SplitKeysHaveTheSameBits) {
  AttentionCase which = make(Storage::bf16, 3, {2500, 1024, 40}, 128, 2, 1, true, 11);
  const AttentionOutput same = unpadded(which);
  which.splits = 3;
  expect_bits_of(same, which, {0, 1476, 2460});
  expect_bits_of(same, which, {100, 20, 1030});
  which.pages = Pages{.size = 16};
  expect_bits_of(same, which, {33, 20, 1030});
}

// Padding that the device's array makes up is never followed outside K and V.
TEST_P(FirstKeys, ArraysThatLieStayInsideTheTensors) {
  AttentionCase which = make(Storage::bf16, 33, {64, 130}, 64, 2, 1, true, 13);
  which.first_keys = {66, 0};
  constexpr std::int32_t least = std::numeric_limits<std::int32_t>::min();
  constexpr std::int32_t most = std::numeric_limits<std::int32_t>::max();
  for (const Firsts& lie : {Firsts{-1, 131}, Firsts{least, most}, Firsts{129, most - 63}}) {
    which.told_first_keys = lie;
    for (const int splits : {1, 2}) {
      which.splits = splits;
      run_checked(which);
    }
  }
  for (const int size : {1, 16}) {
    which.pages = Pages{.size = size};
    for (const Firsts& lie : {Firsts{-1, 4097}, Firsts{least, most}, Firsts{1 << 26, (1 << 26) - 1}}) {
      which.told_first_keys = lie;
      run_checked(which);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, FirstKeys, ::testing::Values("gfx942", "gfx950"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace wavejit::tests
