// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Lists of the indexer on the simulated GPU: NaN and infinities, hidden scores, rows in parts, and a call's own scores. Others
// are rows of value_rows.txt.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "sparse_indexer/indexer_run.h"

namespace wavejit::tests {
namespace {

class SparseSelect : public ::testing::TestWithParam<const char*> {
 protected:
  IndexerOutput run(const IndexerCase& which) {
    IndexerOutput output = run_indexer(engine_.get(), which);
    EXPECT_EQ(output.status, WAVEJIT_OK) << output.detail << output.reports;
    EXPECT_EQ(output.reports, "");
    EXPECT_TRUE(output.fence_intact) << "something outside the outputs was written";
    return output;
  }
  void matches(const IndexerCase& which) { EXPECT_EQ(wrong_lists(which, run(which), which.scores), ""); }

  Engine engine_{GetParam()};
};

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();

// NaN, of either sign, is larger than every number; −0 is 0; −∞ is in no list.
TEST_P(SparseSelect, NanAndInfinity) {
  IndexerCase which = given_scores(1, 1, 600, 40, 60);
  for (const std::size_t key : {5, 77, 400}) which.scores[key] = nan;
  which.scores[300] = -nan;
  which.scores[301] = infinity;
  for (std::size_t key = 100; key < 200; ++key) which.scores[key] = -infinity;
  const IndexerOutput output = run(which);
  EXPECT_EQ(wrong_lists(which, output, which.scores), "");
  for (const std::int32_t key : {5, 77, 300, 301, 400}) EXPECT_TRUE(std::ranges::contains(output.indices, key)) << key;
  // The largest one: the first NaN.
  which.top = 1;
  EXPECT_EQ(run(which).indices, std::vector<std::int32_t>{5});
  // Zeros of both signs are equal.
  IndexerCase zeros = given_scores(1, 1, 50, 20, 61);
  for (std::size_t key = 0; key < 50; ++key) zeros.scores[key] = key % 2 == 0 ? 0.0F : -0.0F;
  matches(zeros);
  // Nothing but what is hidden.
  for (float& score : zeros.scores) score = -infinity;
  const IndexerOutput none = run(zeros);
  EXPECT_EQ(none.counts, std::vector<std::int32_t>{0});
  EXPECT_EQ(none.indices, std::vector<std::int32_t>(20, -1));
}

// What a row does not see is in no list, whatever its score.
TEST_P(SparseSelect, HiddenScoresAreNotRead) {
  IndexerCase which = given_scores(1, 2, 100, 60, 80);
  which.key_begins = {7, 50};
  which.key_ends = {90, 51};
  const IndexerOutput clean = run(which);
  for (std::size_t row = 0; row < 2; ++row)
    for (std::size_t key = 0; key < 100; ++key) {
      const auto [begin, end] = which.seen(row);
      if (static_cast<std::int64_t>(key) < begin || static_cast<std::int64_t>(key) >= end)
        which.scores[(row * 100) + key] = key % 2 == 0 ? nan : infinity;
    }
  EXPECT_EQ(run(which).indices, clean.indices);
}

// Workgroups that have a part of a row each, and one more that chooses among what they chose: the same list. NaN,
// equals across the borders of parts, parts that the row does not see, and fewer than k of them.
TEST_P(SparseSelect, PartsOfALongRowGiveTheSameList) {
  const auto launches_of = [&](const IndexerCase& which, IndexerOutput& output) {
    wavejit_simgpu_counters before{};
    wavejit_simgpu_counters after{};
    before.size = after.size = sizeof before;
    wavejit_simgpu_get_counters(&before);
    output = run(which);
    wavejit_simgpu_get_counters(&after);
    return after.launches - before.launches;
  };
  constexpr std::int64_t keys = 131'075;
  IndexerCase which = given_scores(1, 3, keys, 2048, 140);
  for (std::size_t key = 0; key < keys; ++key) {
    float& equal = which.scores[keys + key];
    equal = std::round(equal * 2) / 2;
  }
  for (const std::size_t key : {7, 20'000, 131'000}) which.scores[key] = nan;
  for (std::size_t key = 30'000; key < 90'000; ++key) which.scores[key] = -infinity;
  which.key_begins = {0, 5, 60'000};
  which.key_ends = {keys, keys, 61'000};
  IndexerOutput whole;
  EXPECT_EQ(launches_of(which, whole), 1U);
  EXPECT_EQ(wrong_lists(which, whole, which.scores), "");
  which.workspace_rows = 3;
  for (const bool values : {true, false}) {
    which.wants_values = values;
    IndexerOutput in_parts;
    EXPECT_EQ(launches_of(which, in_parts), 2U);
    EXPECT_EQ(wrong_lists(which, in_parts, which.scores), "");
    EXPECT_EQ(in_parts.indices, whole.indices);
  }
}

// The whole step: lists of the scores that the call itself made, in a tensor, in the engine's workspace, and in one of
// the caller's that holds a few rows at a time.
TEST_P(SparseSelect, ListsOfTheCallsOwnScores) {
  IndexerCase which = indexer_case(Storage::bf16, 3, 4, 300, 64, 50, 100);
  which.causal = true;
  which.key_lengths = {300, 17, 299};
  const IndexerOutput whole = run(which);
  EXPECT_EQ(wrong_scores(which, whole), "");
  EXPECT_EQ(wrong_lists(which, whole, whole.scores), "");
  which.wants_scores = false;
  for (const std::int64_t workspace_rows : {0, 1, 3, 4, 7, 8, 50}) {
    SCOPED_TRACE(workspace_rows);
    which.workspace_rows = workspace_rows;
    const IndexerOutput output = run(which);
    EXPECT_EQ(output.indices, whole.indices);
    EXPECT_EQ(bits_of(output.values), bits_of(whole.values));
    EXPECT_EQ(output.counts, whole.counts);
  }
  which.workspace_rows = 0;
  which.page = 64;
  EXPECT_EQ(run(which).indices, whole.indices);
  for (const std::size_t row : {0, 5, 11}) {
    const std::vector<std::int32_t> of_row(whole.indices.begin() + static_cast<std::ptrdiff_t>(row * 50),
                                           whole.indices.begin() + static_cast<std::ptrdiff_t>((row + 1) * 50));
    EXPECT_EQ(run(only_row(which, row)).indices, of_row) << row;
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, SparseSelect, ::testing::Values("gfx942", "gfx950"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace wavejit::tests
