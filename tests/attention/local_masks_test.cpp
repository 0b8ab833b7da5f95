// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Local chunks, and batches of which some sequences have a diagonal: against float64 on every pipeline under every
// schedule, and bit by bit against other masks that show the same keys.
#include <gtest/gtest.h>

#include <algorithm>
#include <format>
#include <limits>
#include <string>
#include <vector>

#include "attention/alone.h"
#include "attention/modified.h"
#include "support/part.h"

namespace wavejit::tests {
namespace {

using Numbers = std::vector<std::int32_t>;

class LocalMasks : public ::testing::TestWithParam<std::string> {
 protected:
  static AttentionCase make(Storage storage, int batch, int queries, int keys, int heads, int kv_heads, int dim,
                            std::uint64_t seed) {
    return make_case(storage, batch, queries, keys, heads, kv_heads, dim, true, seed);
  }
  // Packed queries of these lengths over dense keys, this many of which count.
  static AttentionCase packed(Storage storage, const Numbers& queries, const Numbers& keys, int dim,
                              std::uint64_t seed) {
    AttentionCase which = make(storage, static_cast<int>(keys.size()), 1, std::ranges::max(keys), 4, 2, dim, seed);
    AttentionInputs& in = which.inputs;
    in.key_lengths = keys;
    in.query_starts = starts_of(queries);
    in.query_length = std::ranges::max(queries);
    in.q = normal_values(storage, std::size_t(in.query_rows()) * in.query_heads * in.head_dim, 1.0, seed + 1000);
    return which;
  }

  static void expect_same(const AttentionOutput& output, const AttentionOutput& wanted) {
    EXPECT_TRUE(output.o == wanted.o) << output.kernel_spec << " beside " << wanted.kernel_spec;
    EXPECT_TRUE(bits_of(output.lse) == bits_of(wanted.lse)) << output.kernel_spec << " beside " << wanted.kernel_spec;
  }
  // As calls of their own, without flags.
  void expect_bits_of_each_alone(const AttentionCase& which, const AttentionOutput& all) {
    const AttentionInputs& in = which.inputs;
    for (int b = 0; b < in.batch; ++b) {
      if (in.queries(b) == 0) continue;
      SCOPED_TRACE(std::format("sequence {}", b));
      AttentionCase one = alone(which, b);
      one.splits = 0;
      one.inputs.causal = in.causal_flags.empty() || in.causal_flags[std::size_t(b)] != 0;
      one.inputs.causal_flags.clear();
      if (!one.inputs.causal) one.inputs.prefix.reset();
      const AttentionOutput output = run_attention(pipelines_.engines().back()->get(), one);
      ASSERT_EQ(output.status, WAVEJIT_OK) << output.detail;
      EXPECT_FALSE(output.kernel_spec.contains("causal_flags"));
      for (int i = 0; i < in.queries(b); ++i)
        for (int h = 0; h < in.query_heads; ++h) {
          const std::size_t dims = in.head_dim;
          const auto row = all.o.begin() + static_cast<std::ptrdiff_t>(in.row_of_output(b, i, h) * dims);
          const auto own = output.o.begin() + static_cast<std::ptrdiff_t>(one.inputs.row_of_output(0, i, h) * dims);
          ASSERT_TRUE(std::equal(own, own + in.head_dim, row)) << "row " << i << ", head " << h;
          ASSERT_EQ(bits_of({output.lse[one.inputs.row_of_lse(0, i, h)]}), bits_of({all.lse[in.row_of_lse(b, i, h)]}));
        }
    }
  }

  Pipelines pipelines_{GetParam()};
};

// Chunks that divide tiles and that do not, larger than all keys, of rows that stand before key 0 and behind the last.
TEST_P(LocalMasks, ChunksMatchFloat64) {
  struct Chunk {
    int queries, keys, chunk, dim = 64, prefix = -1;
  };
  int seed = 200;
  for (const Chunk& one :
       {Chunk{.queries = 65, .keys = 65, .chunk = 2}, Chunk{.queries = 33, .keys = 300, .chunk = 7, .dim = 128},
        Chunk{.queries = 300, .keys = 300, .chunk = 64, .dim = 128}, Chunk{.queries = 300, .keys = 1500, .chunk = 400},
        Chunk{.queries = 129, .keys = 50, .chunk = 20}, Chunk{.queries = 40, .keys = 70, .chunk = 1 << 30},
        Chunk{.queries = 70, .keys = 90, .chunk = 33, .dim = 64, .prefix = 50},
        Chunk{.queries = 270, .keys = 700, .chunk = 130, .dim = 128, .prefix = 300}}) {
    SCOPED_TRACE(
        std::format("q{} k{} chunked {} d{} prefix {}", one.queries, one.keys, one.chunk, one.dim, one.prefix));
    AttentionCase which = make(seed % 2 == 0 ? Storage::bf16 : Storage::fp16, 1, one.queries, one.keys, 2, 1, one.dim,
                               static_cast<std::uint64_t>(seed));
    ++seed;
    which.inputs.local_chunk = one.chunk;
    if (one.prefix >= 0) which.inputs.prefix = one.prefix;
    const AttentionOutput output = pipelines_.check(which);
    EXPECT_TRUE(output.kernel_spec.contains(" chunked ")) << output.kernel_spec;
  }
}

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

TEST_P(LocalMasks, ChunksOfOneKeyAndOfAllKeysHaveTheBitsOfOtherMasks) {
  AttentionCase which = make(Storage::bf16, 1, 70, 150, 2, 1, 64, 240);
  const AttentionOutput causal = pipelines_.run(which);
  which.inputs.local_chunk = 150;
  const AttentionOutput chunked = pipelines_.run(which);
  EXPECT_NE(chunked.kernel_spec, causal.kernel_spec);
  expect_same(chunked, causal);
  which.inputs.local_chunk = 1;
  const AttentionOutput single = pipelines_.check(which);
  EXPECT_TRUE(single.kernel_spec.contains(" window ")) << single.kernel_spec;
}

// Parts of runs that rows do not see are not merged: in the same launch and in a second one, of heads packed or not, of
// waves that share chunks or not.
TEST_P(LocalMasks, ChunksOfSplitKeys) {
  int index = 0;
  for (const int rows : {1, 40}) {
    if (!in_part(index++, 2)) continue;
    AttentionCase which = make(Storage::bf16, 1, rows, 3200, rows == 40 ? 2 : 4, 2, rows == 1 ? 128 : 64, 250);
    which.inputs.local_chunk = rows == 40 ? 3197 : 1500;
    const AttentionOutput whole = pipelines_.check(which);
    which.splits = 3;
    for (const std::uint32_t flags : {WAVEJIT_ONE_LAUNCH, WAVEJIT_TWO_LAUNCHES}) {
      which.flags = flags;
      const AttentionOutput split = pipelines_.run(which);
      EXPECT_TRUE(split.kernel_spec.contains(" split=")) << split.kernel_spec;
      expect_same(split, whole);
    }
  }
}

TEST_P(LocalMasks, ChunksOfPagesAndOfMixes) {
  AttentionCase which = packed(Storage::bf16, {260, 1, 3, 0, 1}, {1300, 1100, 70, 5, 0}, 64, 260);
  which.inputs.local_chunk = 450;
  const AttentionOutput dense = pipelines_.check(which);
  expect_bits_of_each_alone(which, dense);
  int index = 0;
  for (const int size : {16, 64, 1}) {
    if (!in_part(index++, 2)) continue;
    which.pages = Pages{.size = size};
    expect_same(pipelines_.run(which), dense);
  }
}

// Sequences whose flag is 0 have the bits of calls without a mask, the others those of causal calls: dense, split and
// merged either way, packed with long and short ones, in pages.
TEST_P(LocalMasks, FlagsMatchFloat64AndCallsOfTheirOwn) {
  AttentionCase which = make(Storage::bf16, 5, 290, 333, 2, 1, 128, 300);
  which.inputs.causal_flags = {1, 0, 255, 0, 128};
  const AttentionOutput all = pipelines_.check(which);
  EXPECT_TRUE(all.kernel_spec.contains(" causal_flags ")) << all.kernel_spec;
  expect_bits_of_each_alone(which, all);
}

TEST_P(LocalMasks, FlagsOfSplitKeys) {
  int index = 0;
  for (const int rows : {2, 40}) {
    if (!in_part(index++, 2)) continue;
    AttentionCase which = make(Storage::fp16, 3, rows, 2100, rows == 40 ? 2 : 4, 2, 64, 310);
    which.inputs.causal_flags = {0, 1, 0};
    // Row 0 sees a chunk less than the last one where it has a diagonal.
    which.inputs.prefix = 1023;
    const AttentionOutput whole = pipelines_.check(which);
    expect_bits_of_each_alone(which, whole);
    which.splits = 3;
    for (const std::uint32_t flags : {WAVEJIT_ONE_LAUNCH, WAVEJIT_TWO_LAUNCHES}) {
      which.flags = flags;
      const AttentionOutput split = pipelines_.run(which);
      EXPECT_TRUE(split.kernel_spec.contains(" split=")) << split.kernel_spec;
      expect_same(split, whole);
    }
  }
}

TEST_P(LocalMasks, FlagsOfPagesAndOfMixes) {
  AttentionCase which = packed(Storage::fp16, {260, 3, 5, 0, 2}, {1300, 1100, 70, 5, 1}, 128, 320);
  which.inputs.causal_flags = {0, 1, 0, 0, 1};
  add_alibi(which, 1);
  const AttentionOutput dense = pipelines_.check(which);
  expect_bits_of_each_alone(which, dense);
  int index = 0;
  for (const int size : {16, 64}) {
    if (!in_part(index++, 2)) continue;
    which.pages = Pages{.size = size};
    expect_same(pipelines_.run(which), dense);
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
