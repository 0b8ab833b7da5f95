// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Single rules and loops against published measurements. docs/timing-model.md is the same as tables.
#include "anchors.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <map>
#include <string>

#include "gtest/gtest.h"
#include "tests/support/part.h"

namespace wavejit::simgpu::testing {
namespace {

TEST(Consistency, SingleRulesAreWithinFivePercent) {
  for (const ConsistencyRow& row : consistency_rows()) {
    const double predicted = row.predict();
    EXPECT_LE(std::abs(predicted - row.published), 0.05 * row.published)
        << row.target << ": " << row.rule << ": predicted " << predicted << ", published " << row.published;
  }
}

// A row that the model gives back would be no contradiction any more.
TEST(Consistency, ContradictedSourcesStandApart) {
  for (const ConsistencyRow& row : contradicted_rows())
    EXPECT_GT(std::abs(row.predict() - row.published), 0.05 * row.published) << row.rule;
}

// FNV-1a of what a row is called and what was published of it.
std::uint64_t digest_of(const std::map<std::string, double>& rows) {
  std::uint64_t digest = 0xcbf29ce484222325;
  const auto take = [&digest](std::uint8_t byte) { digest = (digest ^ byte) * 0x100000001b3; };
  for (const auto& [id, published] : rows) {
    for (const char letter : id) take(static_cast<std::uint8_t>(letter));
    for (const std::uint8_t byte : std::bit_cast<std::array<std::uint8_t, sizeof published>>(published)) take(byte);
  }
  return digest;
}

TEST(Anchors, AreFrozen) {
  // Nobody takes a row out without moving it to `left`, and nobody changes what was published.
  std::map<std::string, int> kinds;
  std::map<std::string, double> rows;
  for (const Anchor& anchor : anchors()) {
    ++kinds[anchor.kind];
    EXPECT_TRUE(rows.emplace(anchor.id, anchor.published).second) << anchor.id;
    EXPECT_FALSE(anchor.source.empty()) << anchor.id;
  }
  const std::map<std::string, int> frozen = {{"whole kernels", 10}, {"real kernels", 30}, {"single-wave duty", 11},
                                             {"deletions", 3},      {"toggles", 4},       {"causal against full", 4},
                                             {"barriers", 2}};
  EXPECT_EQ(kinds, frozen);
  EXPECT_EQ(digest_of(rows), 0x79bb89328ecaa220);
}

// The page docs/timing-model.md has all of them, and a test says that it is current.
TEST(Anchors, EveryLoopRuns) {
  int loops = 0;
  int next = 0;
  for (const Anchor& anchor : anchors()) {
    const int index = next++;
    if (!tests::in_part(index, 8)) continue;
    const auto predicted = predict_loop(anchor.id);
    if (!predicted) continue;
    ++loops;
    if (anchor.unit == "% of cycles") continue;
    EXPECT_GE(*predicted, 0) << anchor.id;
  }
  EXPECT_GT(loops, 0);
  if (tests::whole_lists()) {
    EXPECT_EQ(loops, 23);
  }
}

// Beyond this the clock would say nothing at all.
TEST(Anchors, LoopsOfPublishedKernelsAreWithinAQuarter) {
  int loops = 0;
  for (const Anchor& anchor : anchors()) {
    if (anchor.kind != "whole kernels") continue;
    const auto predicted = predict_loop(anchor.id);
    if (!predicted) continue;
    EXPECT_LE(std::abs(anchor.error(*predicted)), 25) << anchor.id << ": " << *predicted;
    ++loops;
  }
  EXPECT_EQ(loops, 3);
}

// What groups in step cost is the sum of their phases, not their overlap: 38 % by traces and the clock at the power
// cap.
TEST(Anchors, GroupsInStepCostWhatTracesSay) {
  const auto predicted = predict_loop("no stagger");
  ASSERT_TRUE(predicted.has_value());
  EXPECT_GT(*predicted, 20);
  EXPECT_LT(*predicted, 70);
}

}  // namespace
}  // namespace wavejit::simgpu::testing
