// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Inputs chosen to break an online softmax: where the maximum jumps, where rows see nothing, where logits are huge.
#include <gtest/gtest.h>

#include <cmath>
#include <format>
#include <limits>
#include <string>
#include <tuple>

#include "support/attention_run.h"

namespace wavejit::tests {
namespace {

// Target and pipeline.
struct Path {
  std::string target;
  const char* pipeline;
};
using Combination = std::tuple<Path, Storage, int>;

class AttentionAdversarial : public ::testing::TestWithParam<Combination> {
 protected:
  Engine make_engine() const {
    wavejit_engine_options options{};
    options.pipeline = std::get<0>(GetParam()).pipeline;
    return {std::get<0>(GetParam()).target, options};
  }
  Storage storage() const { return std::get<1>(GetParam()); }
  int head_dim() const { return std::get<2>(GetParam()); }

  // Sets the score of (query row, key) apart from the noise of the others: q and k are zero but for a few coordinates.
  static void clear_scores(AttentionCase& which) {
    std::ranges::fill(which.inputs.q, 0.0F);
    std::ranges::fill(which.inputs.k, 0.0F);
  }
  static float& q_at(AttentionCase& which, int row, int column) {
    return which.inputs.q[std::size_t(row) * which.inputs.query_heads * which.inputs.head_dim + column];
  }
  static float& k_at(AttentionCase& which, int key, int column) {
    return which.inputs.k[std::size_t(key) * which.inputs.kv_heads * which.inputs.head_dim + column];
  }

  AttentionOutput check(Engine& engine, const AttentionCase& which) {
    const AttentionOutput output = run_attention(engine.get(), which);
    EXPECT_EQ(output.status, WAVEJIT_OK) << output.detail << output.reports;
    if (output.status != WAVEJIT_OK) return output;
    EXPECT_EQ(output.reports, "");
    EXPECT_TRUE(output.fence_intact);
    EXPECT_EQ(compare_rows(which, attention_reference(which.inputs), output).wrong(), "");
    return output;
  }
};

// Unequal causal: in one tile rows 0–30 of a wave see nothing new (all −inf) while row 31 sees one key with a score far
// above its maximum. A rescale that takes the tile's maximum for all rows turns the others into NaN.
TEST_P(AttentionAdversarial, OneRowJumpsWhileOthersSeeOnlyMaskedKeys) {
  Engine engine = make_engine();
  for (const double jump : {4.0, 9.0, 12.0, 60.0}) {
    AttentionCase which = make_case(storage(), 1, 256, 289, 1, 1, head_dim(), true, 21);
    clear_scores(which);
    which.inputs.scale = static_cast<float>(std::log(2.0));  // scores in log2 units
    q_at(which, 31, 0) = 1.0F;                               // row 31 sees keys 0 … 64
    k_at(which, 64, 0) = static_cast<float>(jump);
    SCOPED_TRACE(std::format("jump {}", jump));
    check(engine, which);
  }
}

// One row's maximum exceeds a later tile's by more than fp16's range while another row of the same wave jumps there.
TEST_P(AttentionAdversarial, OldMaximumFarAboveTheTileWhileAnotherRowRescales) {
  Engine engine = make_engine();
  AttentionCase which = make_case(storage(), 1, 32, 192, 1, 1, head_dim(), false, 22);
  clear_scores(which);
  which.inputs.scale = static_cast<float>(std::log(2.0));
  for (int row = 0; row < 32; ++row) q_at(which, row, row % 2) = 1.0F;
  k_at(which, 60, 0) = 40.0F;   // even rows: the peak, late in the first tile
  k_at(which, 100, 1) = 40.0F;  // odd rows: a jump in the second tile
  check(engine, which);
}

TEST_P(AttentionAdversarial, MaximumGrowsWithEveryTile) {
  Engine engine = make_engine();
  AttentionCase which = make_case(storage(), 1, 64, 512, 1, 1, head_dim(), false, 23);
  clear_scores(which);
  which.inputs.scale = static_cast<float>(std::log(2.0));
  for (int row = 0; row < 64; ++row) q_at(which, row, 0) = 1.0F;
  for (int key = 0; key < 512; ++key) k_at(which, key, 0) = static_cast<float>(key / 64 * 10);
  check(engine, which);
}

TEST_P(AttentionAdversarial, LargeLogits) {
  Engine engine = make_engine();
  for (const double spread : {4.0, 16.0}) {
    SCOPED_TRACE(std::format("spread {}", spread));
    AttentionCase which = make_case(storage(), 1, 96, 160, 2, 1, head_dim(), true, 24, spread);
    const AttentionOutput output = run_attention(engine.get(), which);
    ASSERT_EQ(output.status, WAVEJIT_OK) << output.detail;
    EXPECT_EQ(compare_rows(which, attention_reference(which.inputs), output).wrong(), "");
  }
}

// Almost as large as they may be (wavejit.h, "Scores"), of either sign, so that maxima jump by as much: one key has the
// weight of a row, and no row is as one that sees nothing.
TEST_P(AttentionAdversarial, ScoresUpToTheirLimit) {
  Engine engine = make_engine();
  for (const double part : {0.99, 0.3}) {
    SCOPED_TRACE(std::format("{} of the limit", part));
    AttentionCase which = make_case(storage(), 1, 96, 160, 2, 1, head_dim(), true, 28);
    const AttentionAnswer small = attention_reference(which.inputs);
    which.inputs.scale = static_cast<float>(which.inputs.scale * part * 0x1p28 / std::ranges::max(small.largest));
    const AttentionAnswer exact = attention_reference(which.inputs);
    ASSERT_LT(std::ranges::max(exact.largest), 0x1p28);
    const AttentionOutput output = check(engine, which);
    for (const float lse : output.lse) ASSERT_TRUE(std::isfinite(lse));
  }
}

// More queries than keys, causal: the first rows see nothing. O = 0 and LSE = −inf exactly, and no neighbour is
// disturbed.
TEST_P(AttentionAdversarial, RowsThatSeeNothing) {
  Engine engine = make_engine();
  for (const auto& [queries, keys] : {std::pair{300, 40}, std::pair{128, 32}, std::pair{257, 1}, std::pair{200, 0}}) {
    SCOPED_TRACE(std::format("q{} k{}", queries, keys));
    AttentionCase which = make_case(storage(), 1, queries, keys, 2, 2, head_dim(), true, 25);
    const AttentionOutput output = check(engine, which);
    for (int row = 0; row < queries - keys; ++row) {
      for (int c = 0; c < 2 * head_dim(); ++c) {
        ASSERT_EQ(output.o[std::size_t(row) * 2 * head_dim() + c] & 0x7FFF, 0) << "row " << row;
      }
    }
  }
}

// The scale is any finite number: zero makes the mean, a negative one prefers the least similar key.
TEST_P(AttentionAdversarial, ZeroAndNegativeScale) {
  Engine engine = make_engine();
  for (const double scale : {0.0, -0.125, -2.0, 3.0}) {
    SCOPED_TRACE(std::format("scale {}", scale));
    AttentionCase which = make_case(storage(), 1, 65, 193, 2, 1, head_dim(), true, 26);
    which.inputs.scale = static_cast<float>(scale);
    const AttentionOutput output = run_attention(engine.get(), which);
    ASSERT_EQ(output.status, WAVEJIT_OK) << output.detail;
    EXPECT_EQ(compare_rows(which, attention_reference(which.inputs), output).wrong(), "");
  }
}

// NaN in the padding must not leak (the matrix has it everywhere); NaN in one query row must stay in that row.
TEST_P(AttentionAdversarial, NanInOneQueryRowStaysThere) {
  Engine engine = make_engine();
  AttentionCase which = make_case(storage(), 1, 70, 130, 1, 1, head_dim(), false, 27);
  const AttentionOutput clean = run_attention(engine.get(), which);
  q_at(which, 5, 3) = std::numeric_limits<float>::quiet_NaN();
  const AttentionOutput dirty = run_attention(engine.get(), which);
  ASSERT_EQ(dirty.status, WAVEJIT_OK) << dirty.detail;
  for (int row = 0; row < 70; ++row) {
    for (int c = 0; c < head_dim(); ++c) {
      const std::size_t at = std::size_t(row) * head_dim() + c;
      if (row == 5) {
        EXPECT_TRUE(std::isnan(from_storage(storage(), dirty.o[at])));
      } else {
        ASSERT_EQ(dirty.o[at], clean.o[at]) << "row " << row;
      }
    }
  }
}

std::string name_of(const ::testing::TestParamInfo<Combination>& info) {
  const auto [path, storage, head_dim] = info.param;
  return std::format("{}_{}_{}_d{}", path.target, path.pipeline, storage == Storage::fp16 ? "fp16" : "bf16", head_dim);
}

INSTANTIATE_TEST_SUITE_P(All, AttentionAdversarial,
                         ::testing::Combine(::testing::Values(Path{"gfx942", "generic"}, Path{"gfx942", "interleaved"},
                                                              Path{"gfx950", "generic"}, Path{"gfx950", "dualwave"}),
                                            ::testing::Values(Storage::fp16, Storage::bf16),
                                            ::testing::Values(64, 128)),
                         name_of);

}  // namespace
}  // namespace wavejit::tests
