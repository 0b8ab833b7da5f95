// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which kernel merges the parts of runs of keys, and what explain says about it.
#include "templates/attention_forward/call/merging.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <tuple>

#include "boards/board.h"
#include "families/call/family.h"
#include "templates/attention_forward/call/descriptor.h"
#include "templates/attention_forward/call/splits.h"

namespace wavejit::tests {
namespace {

using attention_forward::AttentionProblem;
using attention_forward::SplitPlan;
using ::testing::HasSubstr;
using ::testing::Not;

const boards::Board& merging_board(std::string_view target = "gfx950") { return *boards::find_product(target); }

AttentionProblem problem_to_merge(const std::string& words) {
  const auto descriptor = attention_forward::parse_descriptor("attention_forward bf16 " + words);
  EXPECT_TRUE(descriptor) << words;
  return attention_forward::problem_of(*descriptor);
}

bool merges_here(const AttentionProblem& problem, std::string_view target = "gfx950",
                 std::uint64_t reach = attention_forward::any_reach) {
  const SplitPlan plan = attention_forward::plan_splits(problem, merging_board(target), {}, reach);
  const auto shape = attention_forward::kernel_shape(problem, plan, merging_board(target));
  EXPECT_EQ(shape.merged, plan.merged);
  EXPECT_EQ(attention_forward::arrivals_of(problem, plan) != 0, plan.merged);
  return plan.merged;
}

std::string said_of_merge(const std::string& words) {
  const auto one = families::parse_problem("attention_forward bf16 " + words);
  EXPECT_TRUE(one) << words;
  for (const families::Note& note : (*one)->notes(merging_board(), {}))
    if (note.label == "splits") return note.text;
  return {};
}

TEST(Merging, GoesByWhatTheClockPredicts) {
  for (const std::string_view target : {"gfx942", "gfx950"}) {
    SCOPED_TRACE(target);
    EXPECT_TRUE(merges_here(problem_to_merge("b1 q1 k2048 h64/8 d128"), target));
    EXPECT_TRUE(merges_here(problem_to_merge("b1 q1 k8192 h16/2 d128"), target));
    EXPECT_TRUE(merges_here(problem_to_merge("b1 q1 k8192 h8/1 d64"), target));
    // One wave has more parts to merge than the wait between two launches takes.
    EXPECT_FALSE(merges_here(problem_to_merge("b16 q1 k65536 h16/2 d128"), target));
    // Waves that share chunks share the parts, too.
    EXPECT_TRUE(merges_here(problem_to_merge("b1 q1 k16384 h16/2 d128"), target));
    EXPECT_TRUE(merges_here(problem_to_merge("b1 q1 k24576 h16/2 d128"), target));
    EXPECT_FALSE(merges_here(problem_to_merge("b1 q1 k131072 h16/2 d128"), target));
    // 32 rows: a tile's parts are more than one workgroup should merge.
    EXPECT_FALSE(merges_here(problem_to_merge("b1 q4 k8192 h8/1 d128"), target));
    // More rows than a wave has.
    EXPECT_FALSE(merges_here(problem_to_merge("b1 q8 k2048 h8/1 d128"), target));
    // Whole keys have no parts.
    EXPECT_FALSE(merges_here(problem_to_merge("b1 q1 k1024 h8/1 d128"), target));
  }
}

TEST(Merging, WhoCallsMaySay) {
  EXPECT_FALSE(merges_here(problem_to_merge("b1 q1 k8192 h16/2 d128 launches=2")));
  EXPECT_TRUE(merges_here(problem_to_merge("b1 q1 k32768 h16/2 d128 launches=1")));
  EXPECT_TRUE(merges_here(problem_to_merge("b1 q8 k2048 h8/1 d128 launches=1")));
  EXPECT_THAT(said_of_merge("b1 q1 k8192 h16/2 d128 launches=2"),
              HasSubstr("merged in a second launch: the call says so"));
  EXPECT_THAT(said_of_merge("b1 q1 k32768 h16/2 d128 launches=1"),
              HasSubstr("by the last workgroup to arrive: the call says so"));
}

// 16 chunks of two kv heads: one wave leaves them to a second launch, four merge them.
TEST(Merging, GoesByWhoSharesChunksWherePinned) {
  const AttentionProblem problem = problem_to_merge("b1 q1 k16384 h16/2 d128");
  for (const auto& [pins, shares, merged] : std::vector<std::tuple<std::string, bool, bool>>{
           {"", true, true},
           {"pipeline=generic chunk_waves=auto", true, true},
           {"pipeline=generic chunk_waves=4", true, true},
           {"pipeline=generic chunk_waves=1", false, false},
           {"pipeline=generic", false, false},
       }) {
    SCOPED_TRACE(pins);
    const families::Toggles toggles = {.pins = pins};
    const SplitPlan plan = attention_forward::plan_splits(problem, merging_board(), toggles);
    const auto shape = attention_forward::kernel_shape(problem, plan, merging_board(), toggles);
    EXPECT_EQ(plan.merged, merged);
    EXPECT_EQ(shape.merged, merged);
    EXPECT_EQ(shape.shared_chunks, shares);
    const auto one = families::parse_problem("attention_forward bf16 b1 q1 k16384 h16/2 d128");
    ASSERT_TRUE(one);
    EXPECT_THAT((*one)->notes(merging_board(), toggles)[0].text,
                HasSubstr(merged ? "merged in the same launch" : "merged in a second launch"));
  }
  // Pipelines without packed heads count no arrivals.
  const families::Toggles other = {.pins = "pipeline=interleaved"};
  const AttentionProblem few = problem_to_merge("b1 q1 k8192 h16/2 d128");
  EXPECT_FALSE(attention_forward::plan_splits(few, merging_board("gfx942"), other).merged);
  EXPECT_TRUE(attention_forward::plan_splits(few, merging_board("gfx942")).merged);
}

// Lines of text know neither, and lead to the same kernels.
TEST(Merging, KnowsNoWorkspaceAndNoRowsOfOthers) {
  for (const char* words : {"b64 q1 k4096 h8/1 d128 splits=4", "b64 q1 k32768 h8/1 d128 splits=32"}) {
    const AttentionProblem one = problem_to_merge(words);
    for (const std::uint64_t sequences : {1, 7, 64})
      EXPECT_EQ(merges_here(one, "gfx950", sequences * 8 * 32 * 528), merges_here(one)) << words;
  }
  AttentionProblem packed = problem_to_merge("b16 q4 k4096 h4/1 d64 layout=packed splits=4");
  const bool all = merges_here(packed);
  packed.query_rows = 16;
  EXPECT_EQ(merges_here(packed), all);
}

// Parts of many packed sequences go in rounds, and are merged in a second launch. A smaller batch has a kernel that
// merges them itself.
TEST(Merging, LinesReachTheKernelsOfSmallerBatches) {
  const std::string line = "attention_forward bf16 b256 q1 k131072 h64/8 d128 layout=packed";
  EXPECT_FALSE(merges_here(problem_to_merge(line.substr(std::string("attention_forward bf16 ").size()))));
  const auto problems = families::parse_problems(line);
  ASSERT_TRUE(problems);
  std::set<std::uint64_t> reached;
  for (const auto& one : *problems) reached.insert((*one->shape(merging_board(), {})).code);
  for (const char* smaller : {"b1 q1 k4096 h64/8 d128 layout=packed", "b1 q1 k131072 h64/8 d128 layout=packed",
                              "b256 q1 k1000 h64/8 d128 layout=packed"}) {
    const auto one = families::parse_problem("attention_forward bf16 " + std::string(smaller));
    ASSERT_TRUE(one);
    EXPECT_TRUE(reached.contains((*one)->shape(merging_board(), {})->code)) << smaller;
  }
  EXPECT_TRUE(merges_here(problem_to_merge("b1 q1 k4096 h64/8 d128 layout=packed")));
}

TEST(Merging, ExplainsItself) {
  EXPECT_THAT(said_of_merge("b1 q1 k8192 h16/2 d128"),
              HasSubstr("; merged in the same launch, by the last workgroup to arrive: "));
  EXPECT_THAT(said_of_merge("b16 q1 k65536 h16/2 d128"), HasSubstr("; merged in a second launch: "));
  EXPECT_THAT(said_of_merge("b1 q8 k2048 h8/1 d128"), HasSubstr("more rows than one of them merges faster"));
  for (const auto& [words, why] : std::vector<std::pair<std::string, std::string>>{
           {"b1 q1 k8192 h8 d128", "a head a workgroup has no kernel beside merged, "},
           {"b1 q1 k8192 h8/1 d128 cache=e4m3", "cache= has no kernel beside merged, "},
           {"b1 q1 k8192 h8/1 d128 bool_mask=1", "a bool mask has no kernel beside merged, "},
           {"b1 q1 k8192 h8/1 d96", "a head dim that tiles pad has no kernel beside merged, "},
           {"b1 q1 k8192 h8/1 d128 trans_o", "a tensor whose dims are not contiguous has no kernel beside merged, "},
           {"b1 q1 k8192 h8/1 d128 o=fp32", "o=fp32 has no kernel beside split=, "}}) {
    EXPECT_THAT(said_of_merge(words), HasSubstr("merged in a second launch: " + why)) << words;
    EXPECT_FALSE(merges_here(problem_to_merge(words + " launches=1"))) << words;
  }
  EXPECT_THAT(said_of_merge("b1 q1 k1024 h8/1 d128"), Not(HasSubstr("merged")));
}

// Registers say which kernels merge. Costs say which calls do, where the caller leaves the choice to the engine.
TEST(Merging, LeavesToTheCallWhatNoCostsAreFittedTo) {
  for (const char* words :
       {"b1 q1 k8192 h8/1 d128 alibi=h layout=paged:16", "b1 q1 k8192 h8/1 d128 bias=1 layout=paged:1",
        "b128 q1 k4096 h8/1 d64 window=900,0 layout=paged:16 first_keys splits=4"}) {
    SCOPED_TRACE(words);
    for (const std::string_view target : {"gfx942", "gfx950"}) {
      EXPECT_FALSE(merges_here(problem_to_merge(words), target));
      EXPECT_TRUE(merges_here(problem_to_merge(std::string(words) + " launches=1"), target));
    }
    EXPECT_THAT(said_of_merge(words), HasSubstr("merged in a second launch: no costs of one launch were fitted to"));
  }
}

}  // namespace
}  // namespace wavejit::tests
