// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// gfx1201's issue model against hardware's own cycles.
#include "replay.h"

#include <cstdlib>
#include <iostream>

#include "gtest/gtest.h"

namespace wavejit::simgpu::testing {
namespace {

class Replay : public ::testing::TestWithParam<Trace> {};

TEST_P(Replay, SumsOfGapsAreAsNearAsThePageSays) {
  const Replayed replayed = replay(path_of(GetParam()));
  ASSERT_EQ(replayed.error, "");
  EXPECT_GT(replayed.compared, 10U);
  std::string text;
  for (const std::string& line : replayed.worst) text += line + "\n";
  EXPECT_LT(std::abs(replayed.percent()), GetParam().within) << replayed.clock << " for " << replayed.hardware << "\n"
                                                             << text;
  RecordProperty("hardware", std::to_string(replayed.hardware));
  RecordProperty("clock", std::to_string(replayed.clock));
}

TEST_P(Replay, WhatIsLeftOutCanBeCompared) {
  const Replayed usual = replay(path_of(GetParam()));
  for (const LeftOut too : {LeftOut::memory, LeftOut::behind_memory, LeftOut::beginning, LeftOut::code}) {
    const Replayed more = replay(path_of(GetParam()), too);
    EXPECT_EQ(more.error, "");
    EXPECT_GE(more.compared, usual.compared);
    EXPECT_GE(more.hardware, usual.hardware);
  }
  EXPECT_GT(replay(path_of(GetParam()), LeftOut::code).compared, usual.compared);
}

INSTANTIATE_TEST_SUITE_P(Traces, Replay, ::testing::ValuesIn(traces()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace wavejit::simgpu::testing
