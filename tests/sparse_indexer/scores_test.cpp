// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Scores of the indexer on the simulated GPU: NaN, infinities, and bits that are a row's own. Against float64 they are rows of
// value_rows.txt.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "sparse_indexer/indexer_run.h"

namespace wavejit::tests {
namespace {

// Rows that read their keys each for itself, and four that share them.
struct Readers {
  const char* target;
  const char* rows;
};
Engine engine_of(const Readers& readers) {
  const std::string pin = std::string("auto tile_queries=") + readers.rows;
  wavejit_engine_options options{};
  options.size = sizeof options;
  options.pipeline = pin.c_str();
  return Engine(readers.target, options);
}

class SparseScores : public ::testing::TestWithParam<Readers> {
 protected:
  IndexerOutput run(const IndexerCase& which) {
    IndexerOutput output = run_indexer(engine_.get(), which);
    EXPECT_EQ(output.status, WAVEJIT_OK) << output.detail << output.reports;
    EXPECT_EQ(output.reports, "");
    EXPECT_TRUE(output.fence_intact) << "something outside the outputs was written";
    EXPECT_EQ(output.kernel_spec.contains(" shared "), std::string(GetParam().rows) == "4") << output.kernel_spec;
    return output;
  }

  Engine engine_ = engine_of(GetParam());
};

std::vector<float> some_scales(std::int64_t count) {
  std::vector<float> scales;
  for (std::int64_t i = 0; i < count; ++i) scales.push_back(0.25F + (0.001F * static_cast<float>(i % 777)));
  return scales;
}

// What a row does not see is never read for it: entries of the table, keys and scales that are NaN.
TEST_P(SparseScores, NanWhereNothingIsSeen) {
  IndexerCase which = indexer_case(Storage::bf16, 1, 2, 100, 33, 0, 110);
  which.key_scales = some_scales(100);
  which.key_begins = {10, 40};
  which.key_ends = {60, 61};
  const IndexerOutput clean = run(which);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (std::size_t key = 0; key < 100; ++key) {
    if (key >= 10 && key < 61) continue;
    which.key_scales[key] = nan;
    for (std::size_t d = 0; d < 128; ++d) which.key_vectors[(key * 128) + d] = nan;
  }
  EXPECT_EQ(bits_of(run(which).scores), bits_of(clean.scores));
  // Seen, it shows, in the one row that sees it; so does a key of infinities beside heads that are not there.
  for (std::size_t d = 0; d < 128; ++d) which.key_vectors[(60 * 128) + d] = nan;
  for (std::size_t d = 0; d < 128; ++d)
    which.key_vectors[(20 * 128) + d] = d == 5 ? -std::numeric_limits<float>::infinity() : 0.0F;
  const IndexerOutput output = run(which);
  EXPECT_TRUE(std::isnan(output.scores[100 + 60]));
  EXPECT_TRUE(std::isinf(output.scores[20]) || std::isnan(output.scores[20]));
  for (const std::size_t key : {10, 19, 21, 59}) EXPECT_EQ(output.scores[key], clean.scores[key]);
}

// One head of positive products, and an infinite key: the heads that the block lacks leave the infinity alone.
TEST_P(SparseScores, HeadsThatAreNotThereShowInNothing) {
  IndexerCase which = indexer_case(Storage::bf16, 1, 1, 40, 1, 0, 120);
  for (float& element : which.queries) element = 1;
  which.weights = {2};
  for (std::size_t d = 0; d < 128; ++d) which.key_vectors[(7 * 128) + d] = std::numeric_limits<float>::infinity();
  EXPECT_EQ(run(which).scores[7], std::numeric_limits<float>::infinity());
  for (std::size_t d = 0; d < 128; ++d) which.key_vectors[(7 * 128) + d] = -std::numeric_limits<float>::infinity();
  EXPECT_EQ(run(which).scores[7], 0.0F);
}

// A row's bits are a function of its queries, weights and keys: not of the batch, of how many waves share its keys, of
// what it does not see.
TEST_P(SparseScores, BitsOfARowAreItsOwn) {
  const IndexerCase whole = indexer_case(Storage::bf16, 3, 5, 260, 64, 0, 140);
  const IndexerOutput together = run(whole);
  for (const std::size_t row : {0, 4, 7, 14}) {
    SCOPED_TRACE(row);
    const std::vector<float> of_row(together.scores.begin() + static_cast<std::ptrdiff_t>(row * 260),
                                    together.scores.begin() + static_cast<std::ptrdiff_t>((row + 1) * 260));
    EXPECT_EQ(bits_of(run(only_row(whole, row)).scores), bits_of(of_row));
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, SparseScores,
                         ::testing::Values(Readers{"gfx942", "1"}, Readers{"gfx942", "4"}, Readers{"gfx950", "1"},
                                           Readers{"gfx950", "4"}),
                         [](const auto& info) { return std::string(info.param.target) + "_rows_" + info.param.rows; });

class SharedKeys : public ::testing::TestWithParam<const char*> {
 protected:
  std::vector<std::uint32_t> bits(const char* rows, const IndexerCase& which) {
    const Engine engine = engine_of({GetParam(), rows});
    const IndexerOutput output = run_indexer(engine.get(), which);
    EXPECT_EQ(output.status, WAVEJIT_OK) << output.detail << output.reports;
    EXPECT_EQ(output.reports, "");
    EXPECT_TRUE(output.fence_intact);
    return bits_of(output.scores);
  }
  void show_in_no_bit(const IndexerCase& which) { EXPECT_EQ(bits("4", which), bits("1", which)); }
};

// Whether rows share keys shows in no bit: with masks, with pages, of rows that see nothing in common, and where a key
// or a scale is not a number.
TEST_P(SharedKeys, ShowInNoBit) {
  IndexerCase which = indexer_case(Storage::bf16, 2, 7, 700, 96, 0, 150);
  which.causal = true;
  which.key_scales = some_scales(1400);
  for (const std::size_t key : {3, 200, 650})
    which.key_vectors[(key * 128) + 5] = std::numeric_limits<float>::infinity();
  which.key_scales[77] = std::numeric_limits<float>::quiet_NaN();
  show_in_no_bit(which);
  which.page = 48;
  which.key_lengths = {700, 3};
  show_in_no_bit(which);
  which.causal = false;
  which.key_lengths.clear();
  which.key_begins = {0, 650, 64, 10, 5, 700, 0, 1, 2, 3, 4, 690, 31, 33};
  which.key_ends = {30, 700, 65, 10, 4, 700, 700, 40, 41, 400, 4, 699, 32, 66};
  show_in_no_bit(which);
}

// Runs of keys by several workgroups, all numbers of heads, and a prompt from its first row on.
TEST_P(SharedKeys, ShowInNoBitOfPrompts) {
  std::uint64_t seed = 160;
  for (const std::int64_t heads : {20, 64, 128}) {
    SCOPED_TRACE(heads);
    IndexerCase which = indexer_case(Storage::fp16, 1, 33, 800, heads, 0, seed++);
    which.causal = true;
    which.prefix = 0;
    show_in_no_bit(which);
    which.page = 1;
    which.window = {300, 0};
    show_in_no_bit(which);
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, SharedKeys, ::testing::Values("gfx942", "gfx950"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace wavejit::tests
