// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Local chunks, and batches of which some sequences have a diagonal, bit by bit against other masks that show the same
// keys and against calls in rounds. Against float64 they are rows of value_rows.txt.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>

#include "attention/modified.h"

namespace wavejit::tests {
namespace {

class LocalMasks : public ::testing::TestWithParam<std::string> {
 protected:
  static AttentionCase make(Storage storage, int batch, int queries, int keys, int heads, int kv_heads, int dim,
                            std::uint64_t seed) {
    return make_case(storage, batch, queries, keys, heads, kv_heads, dim, true, seed);
  }
  static void expect_same(const AttentionOutput& output, const AttentionOutput& wanted) {
    EXPECT_TRUE(output.o == wanted.o) << output.kernel_spec << " beside " << wanted.kernel_spec;
    EXPECT_TRUE(bits_of(output.lse) == bits_of(wanted.lse)) << output.kernel_spec << " beside " << wanted.kernel_spec;
  }
  Pipelines pipelines_{GetParam()};
};

// A bias of −∞ hides what other chunks hold.
TEST_P(LocalMasks, ChunksHaveTheBitsOfABiasThatHides) {
  AttentionCase which = make(Storage::bf16, 1, 290, 333, 2, 1, 128, 220);
  add_bias(which, 1, 1, 1.0, 221);
  which.inputs.local_chunk = 90;
  const AttentionOutput chunked = pipelines_.run(which);
  which.inputs.local_chunk = 0;
  for (int i = 0; i < 290; ++i)
    for (int j = 0; j < (i + 43) / 90 * 90; ++j)
      which.inputs.bias[std::size_t(i) * 333 + std::size_t(j)] = -std::numeric_limits<float>::infinity();
  expect_same(chunked, pipelines_.run(which));
}

TEST_P(LocalMasks, ARowHasTheBitsOfItsOwnWindow) {
  AttentionCase which = make(Storage::fp16, 1, 150, 400, 2, 1, 64, 230);
  which.inputs.local_chunk = 70;
  const AttentionOutput all = pipelines_.run(which);
  constexpr std::size_t row_size = 2 * 64;
  for (const int row : {0, 29, 30, 31, 100, 149}) {
    SCOPED_TRACE(row);
    AttentionCase alone = which;
    AttentionInputs& in = alone.inputs;
    in.query_length = 1;
    in.q.assign(which.inputs.q.begin() + static_cast<std::ptrdiff_t>(row * row_size),
                which.inputs.q.begin() + static_cast<std::ptrdiff_t>((row + 1) * row_size));
    in.local_chunk = 0;
    in.prefix = 250 + row;
    in.window = true;
    in.window_left = (250 + row) % 70;
    in.window_right = 0;
    const AttentionOutput one = run_attention(pipelines_.generic().get(), alone);
    ASSERT_EQ(one.status, WAVEJIT_OK) << one.detail;
    EXPECT_TRUE(std::equal(one.o.begin(), one.o.end(), all.o.begin() + static_cast<std::ptrdiff_t>(row * row_size)));
    for (std::size_t h = 0; h < 2; ++h) EXPECT_EQ(one.lse[h], all.lse[h * 150 + std::size_t(row)]);
  }
}

// In rounds, because a workspace has room for one sequence: flags go with their sequences.
TEST_P(LocalMasks, FlagsOfRounds) {
  AttentionCase which = make(Storage::bf16, 3, 4, 2100, 4, 2, 64, 330);
  which.inputs.causal_flags = {1, 0, 1};
  which.inputs.prefix = 700;
  const AttentionOutput whole = pipelines_.check(which);
  which.own_workspace = true;
  which.withheld_workspace = 1;
  expect_same(pipelines_.run(which), whole);
}

INSTANTIATE_TEST_SUITE_P(All, LocalMasks, ::testing::Values("gfx942", "gfx950"),
                         [](const ::testing::TestParamInfo<std::string>& info) { return info.param; });

}  // namespace
}  // namespace wavejit::tests
