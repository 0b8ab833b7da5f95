// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Every ladder in the tables is one that kernels can be made with, and what none can be made with is refused in words.
#include "templates/attention_forward/kernel/ladders.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <set>
#include <string>
#include <string_view>
#include <tuple>

#include "templates/attention_forward/kernel/parameters.h"

namespace wavejit::attention_forward {
namespace {

using ::testing::HasSubstr;

constexpr std::array overlapped = {Pipeline::dualwave, Pipeline::interleaved};

TEST(Ladders, AreValidAndHaveNamesOfTheirOwn) {
  for (const Pipeline pipeline : overlapped) {
    std::set<std::string_view> names;
    for (const Ladder& ladder : ladders(pipeline)) {
      SCOPED_TRACE(ladder.name);
      EXPECT_EQ(fault_of(ladder), "");
      EXPECT_EQ(ladder.pipeline, pipeline);
      EXPECT_TRUE(names.insert(ladder.name).second) << "twice";
      EXPECT_EQ(ladder.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_"), std::string_view::npos)
          << "a word of a spec";
      EXPECT_EQ(find_ladder(pipeline, ladder.name), &ladder);
      EXPECT_FALSE(ladder.idea.empty());
    }
    EXPECT_EQ(ladders(pipeline).front().name, standard_ladder);
    EXPECT_EQ(find_ladder(pipeline, ""), &ladders(pipeline).front());
    EXPECT_EQ(find_ladder(pipeline, "nobody"), nullptr);
    EXPECT_GT(ladders(pipeline).size(), 1U);
  }
  EXPECT_TRUE(ladders(Pipeline::generic).empty());
  EXPECT_EQ(find_ladder(Pipeline::generic, ""), nullptr);
}

template <typename Change>
std::string fault_of_changed(Pipeline pipeline, Change change) {
  Ladder ladder = ladders(pipeline).front();
  change(ladder);
  return fault_of(ladder);
}

TEST(Ladders, ThatMakeNoKernelAreRefusedInWords) {
  static constexpr std::array<Rung, 1> short_rungs = {{{.matrix = 7, .vector = 8}}};
  static constexpr std::array<Rung, 2> empty_rung = {{{.matrix = 0, .vector = 8}, {.matrix = 16, .vector = 4}}};
  static constexpr std::array<Rung, 1> negative = {{{.matrix = 16, .vector = -4}}};
  for (const Pipeline pipeline : overlapped) {
    EXPECT_THAT(fault_of_changed(pipeline, [](Ladder& ladder) { ladder.finish.rungs_64 = short_rungs; }),
                HasSubstr("ladder=standard: finish: head dim 64: rungs for 7 matrix instructions; the product has " +
                          std::to_string(matrix_instructions(pipeline, 64))));
    EXPECT_THAT(fault_of_changed(pipeline, [](Ladder& ladder) { ladder.begin.rungs_128 = {}; }),
                HasSubstr("begin: head dim 128: rungs for 0 matrix instructions"));
    EXPECT_THAT(fault_of_changed(pipeline, [](Ladder& ladder) { ladder.begin.rungs_128 = empty_rung; }),
                HasSubstr("a rung of 0 matrix instructions"));
    EXPECT_THAT(fault_of_changed(pipeline, [](Ladder& ladder) { ladder.begin.rungs_128 = negative; }),
                HasSubstr("with -4 slots"));
    EXPECT_THAT(fault_of_changed(pipeline, [](Ladder& ladder) { ladder.finish.lead = -1; }),
                HasSubstr("before the first operation"));
    for (const int weights : {-1, 33}) {
      EXPECT_THAT(fault_of_changed(pipeline, [&](Ladder& ladder) { ladder.weighed = weights; }),
                  HasSubstr("accepted: 0 to 32"));
    }
  }
  EXPECT_THAT(fault_of_changed(Pipeline::dualwave, [](Ladder& ladder) { ladder.read_ahead = 4; }),
              HasSubstr("4 fragments ahead; accepted: 0"));
  EXPECT_THAT(fault_of_changed(Pipeline::dualwave, [](Ladder& ladder) { ladder.begin.write_after = 4; }),
              HasSubstr("only pipeline=interleaved"));
  for (const int fragments : {0, 9}) {
    EXPECT_THAT(fault_of_changed(Pipeline::interleaved, [&](Ladder& ladder) { ladder.read_ahead = fragments; }),
                HasSubstr("accepted: 1 to 8"));
  }
  EXPECT_THAT(fault_of_changed(Pipeline::dualwave, [](Ladder& ladder) { ladder.pipeline = Pipeline::generic; }),
              HasSubstr("pipeline=generic has no ladders"));
}

ForwardKernel spec_of(const char* target, Pipeline pipeline, int tile_queries, const char* ladder) {
  ForwardKernel spec;
  spec.target = target;
  spec.pipeline = pipeline;
  spec.tile_queries = tile_queries;
  spec.ladder = ladder;
  return spec;
}

TEST(Resources, RefuseALadderThatThePipelineDoesNotHave) {
  EXPECT_TRUE(resources_of(spec_of("gfx950", Pipeline::dualwave, 256, "early")));
  EXPECT_THAT(resources_of(spec_of("gfx950", Pipeline::dualwave, 256, "read_2")).error(),
              HasSubstr("ladder=read_2 is no ladder of pipeline=dualwave; accepted: standard, early, late"));
  EXPECT_EQ(resources_of(spec_of("gfx950", Pipeline::generic, 128, "early")).error(),
            "ladder=early is no ladder of pipeline=generic, which has none");
}

// LDS and waves are the schedule's, whatever the ladder.
TEST(Resources, AreTheSameOnEveryLadder) {
  for (const auto& [target, pipeline, rows] :
       {std::tuple("gfx950", Pipeline::dualwave, 256), std::tuple("gfx942", Pipeline::interleaved, 128)}) {
    const auto standard = resources_of(spec_of(target, pipeline, rows, ""));
    ASSERT_TRUE(standard) << standard.error();
    for (const Ladder& ladder : ladders(pipeline)) {
      const auto resources = resources_of(spec_of(target, pipeline, rows, std::string(ladder.name).c_str()));
      ASSERT_TRUE(resources) << resources.error();
      EXPECT_EQ(resources->lds_bytes, standard->lds_bytes);
      EXPECT_EQ(resources->vgpr_budget, standard->vgpr_budget);
      EXPECT_EQ(resources->workgroups_per_compute_unit, standard->workgroups_per_compute_unit);
    }
  }
}

}  // namespace
}  // namespace wavejit::attention_forward
