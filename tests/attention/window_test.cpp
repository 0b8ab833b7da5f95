// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Windows and prefixes: what rows see, which tiles are walked, and that neither shows in bits.
#include <gtest/gtest.h>

#include <format>
#include <string>
#include <tuple>

#include "attention/modified.h"

namespace wavejit::tests {
namespace {

using Combination = std::tuple<std::string, Storage, int>;

class AttentionWindow : public ::testing::TestWithParam<Combination> {
 protected:
  AttentionCase make(int queries, int keys, std::uint64_t seed) const {
    return make_case(std::get<1>(GetParam()), 1, queries, keys, 2, 1, head_dim(), false, seed);
  }
  int head_dim() const { return std::get<2>(GetParam()); }
  Pipelines pipelines_{std::get<0>(GetParam())};
};

struct Window {
  int queries, keys, left, right;
  bool causal = false;
  int prefix = -1;
};

TEST_P(AttentionWindow, MatchesFloat64) {
  // Windows inside a tile, over tiles, at the ends, beyond them; rows that see nothing; first tiles from 0 to 5.
  constexpr Window windows[] = {
      {.queries = 65, .keys = 65, .left = 0, .right = 0},
      {.queries = 33, .keys = 300, .left = 5, .right = 3},
      {.queries = 129, .keys = 257, .left = 64, .right = 0, .causal = true},
      {.queries = 31, .keys = 385, .left = -1, .right = 20},
      {.queries = 63, .keys = 200, .left = 17, .right = -1},
      {.queries = 300, .keys = 100, .left = 30, .right = 30},
      {.queries = 40, .keys = 330, .left = 90, .right = 63, .causal = false, .prefix = 170},
      {.queries = 150, .keys = 70, .left = 3, .right = 0, .causal = true, .prefix = 0},
      {.queries = 50, .keys = 90, .left = 0, .right = 0, .causal = false, .prefix = 90},
      {.queries = 70, .keys = 90, .left = -1, .right = -1, .causal = true, .prefix = 33},
  };
  int seed = 100;
  for (const Window& window : windows) {
    SCOPED_TRACE(std::format("q{} k{} window {},{} causal {} prefix {}", window.queries, window.keys, window.left,
                             window.right, window.causal, window.prefix));
    AttentionCase which = make(window.queries, window.keys, seed++);
    which.inputs.causal = window.causal;
    which.inputs.window = window.left >= 0 || window.right >= 0;
    which.inputs.window_left = window.left;
    which.inputs.window_right = window.right;
    if (window.prefix >= 0) which.inputs.prefix = window.prefix;
    pipelines_.check(which);
  }
}

// The dual-wave pipeline from first tiles of either parity, over one tile to many.
TEST_P(AttentionWindow, WalksFromAnyTile) {
  for (const int prefix : {0, 64, 130, 200, 449}) {
    for (const int left : {0, 70, 140}) {
      SCOPED_TRACE(std::format("prefix {} left {}", prefix, left));
      AttentionCase which = make(32, 500, 120);
      which.inputs.window = which.inputs.causal = true;
      which.inputs.window_left = left;
      which.inputs.window_right = 0;
      which.inputs.prefix = prefix;
      pipelines_.check(which);
    }
  }
}

TEST_P(AttentionWindow, ThatHidesNothingHasTheBitsOfNone) {
  AttentionCase which = make(70, 150, 130);
  const AttentionOutput full = pipelines_.run(which);
  which.inputs.window = true;
  which.inputs.window_left = which.inputs.window_right = 10'000;
  const AttentionOutput window = pipelines_.run(which);
  EXPECT_NE(window.kernel_spec, full.kernel_spec);
  EXPECT_EQ(window.o, full.o);
  EXPECT_EQ(window.lse, full.lse);
}

TEST_P(AttentionWindow, ThatEndsAtTheDiagonalHasTheBitsOfCausal) {
  AttentionCase which = make(70, 150, 131);
  which.inputs.causal = true;
  const AttentionOutput causal = pipelines_.run(which);
  which.inputs.causal = false;
  which.inputs.window = true;
  which.inputs.window_left = 10'000;
  which.inputs.window_right = 0;
  const AttentionOutput window = pipelines_.run(which);
  EXPECT_NE(window.kernel_spec, causal.kernel_spec);
  EXPECT_EQ(window.o, causal.o);
  EXPECT_EQ(window.lse, causal.lse);
}

// Tiles that others in the workgroup see and those that nobody sees: nothing of either shows.
TEST_P(AttentionWindow, RowAloneOrAmongOthers) {
  AttentionCase which = make(140, 400, 132);
  which.inputs.window = true;
  which.inputs.window_left = 75;
  which.inputs.window_right = 10;
  which.inputs.prefix = 180;
  const AttentionOutput all = pipelines_.run(which);
  const std::size_t row_size = std::size_t(2) * head_dim();
  for (const int row : {0, 63, 101, 139}) {
    AttentionCase alone = which;
    alone.inputs.query_length = 1;
    alone.inputs.q.assign(which.inputs.q.begin() + row * row_size, which.inputs.q.begin() + (row + 1) * row_size);
    alone.inputs.prefix = 180 + row;
    const AttentionOutput one = run_attention(pipelines_.generic().get(), alone);
    EXPECT_TRUE(std::ranges::equal(one.o, std::span(all.o).subspan(row * row_size, row_size))) << "row " << row;
    for (int h = 0; h < 2; ++h) EXPECT_EQ(one.lse[h], all.lse[std::size_t(h) * 140 + row]);
  }
}

std::string name_of(const ::testing::TestParamInfo<Combination>& info) {
  const auto [target, storage, head_dim] = info.param;
  return std::format("{}_{}_d{}", target, storage == Storage::fp16 ? "fp16" : "bf16", head_dim);
}

INSTANTIATE_TEST_SUITE_P(All, AttentionWindow,
                         ::testing::Values(Combination{"gfx942", Storage::fp16, 64},
                                           Combination{"gfx942", Storage::bf16, 128},
                                           Combination{"gfx950", Storage::bf16, 64},
                                           Combination{"gfx950", Storage::fp16, 128}),
                         name_of);

}  // namespace
}  // namespace wavejit::tests
