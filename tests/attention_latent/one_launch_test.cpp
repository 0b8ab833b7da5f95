// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Parts that the last workgroup to arrive merges, in the launch that leaves them: the same bits as a second launch's,
// whatever is walked, whoever comes last, and whatever was launched before.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include "attention/schedules.h"
#include "attention_latent/latent_run.h"
#include "support/part.h"

namespace wavejit::tests {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class LatentOneLaunch : public ::testing::TestWithParam<const char*> {
 protected:
  LatentOutput run(const std::string& words, int launches) {
    LatentOutput output = run_latent(engine_.get(), latent_arrays(words + " launches=" + std::to_string(launches)));
    EXPECT_EQ(output.status, WAVEJIT_OK) << output.detail << output.reports;
    EXPECT_EQ(output.reports, "");
    EXPECT_TRUE(output.fence_intact);
    return output;
  }

  void has_the_bits_of_two(const std::string& words) {
    SCOPED_TRACE(words);
    const LatentOutput two = run(words, 2);
    const LatentOutput one = run(words, 1);
    EXPECT_THAT(two.kernel_spec, Not(HasSubstr(" merged")));
    EXPECT_THAT(one.kernel_spec, HasSubstr(" merged"));
    EXPECT_EQ(one, two);
    EXPECT_EQ(wrong_latent(latent_arrays(words), one, 7), "");
  }

  Engine engine_{GetParam()};
};

// Rows of 32, 64 and (on gfx950) 128; a tile that is not full; pages of every kind; lengths of their own, among them
// none; lists by number and by slot.
constexpr const char* cases[] = {
    "bf16 b2 q1 k3000 h16 d576/512 lse splits=3",
    "bf16 b3 q1 k2100 h12 d576/512 lse sink splits=3 k_lengths=2100,40,0",
    "bf16 b1 q5 k1100 h9 d512 causal lse splits=2",
    "fp16 b1 q3 k2050 h20 d576/512 causal lse softcap=5 splits=3",
    "bf16 b1 q1 k1030 h128 d576/512 lse splits=2",
    "bf16 b1 q1 k2100 h1 d320/256 lse splits=3",
    "fp16 b2 q1 k1100 h33 d320/256 layout=paged:16 k_lengths=1100,1024 splits=2",
    "bf16 b2 q1 k1100 h16 d576/512 layout=paged:64 k_lengths=1100,70 splits=2",
    "bf16 b2 q1 k1100 h3 d576/512 layout=paged:1 k_lengths=1100,1025 splits=2",
    "bf16 b2 q9 k1100 h8 d576/512 causal lse layout=packed q_lengths=9,2 k_lengths=1100,50 splits=2",
    "bf16 b2 q2 k900 h16 d576/512 causal lse layout=paged:64 k_lengths=900,40 top_k=600:mixed splits=3",
    "fp16 b2 q1 k700 h40 d320/256 lse top_k=600:slots:mixed splits=2",
};

TEST_P(LatentOneLaunch, HasTheBitsOfTwo) {
  int index = 0;
  for (const char* words : cases)
    if (in_part(index++, 2)) has_the_bits_of_two(words);
}

// A scale, which is none of a power of two, is a factor of scores and of O, whoever merges; scores that a soft cap
// modified know it no more. Rows that have scales have none behind them.
TEST_P(LatentOneLaunch, HasTheBitsOfTwoOverBytes) {
  const bool fnuz = std::string(GetParam()) == "gfx942";
  const std::string e4m3 = fnuz ? " cache=e4m3_fnuz" : " cache=e4m3";
  const std::string e5m2 = fnuz ? " cache=e5m2_fnuz" : " cache=e5m2";
  const std::vector<std::string> calls = {
      "bf16 b2 q1 k2100 h16 d576/512 lse sink splits=3 k_lengths=2100,40 cache_scales=b" + e4m3,
      "fp16 b1 q1 k1100 h40 d576/512 lse softcap=5 splits=2 cache_scales=1" + e5m2,
      "bf16 b1 q1 k1030 h128 d576/512 lse splits=2 cache_scales=1 cache=i8",
      "bf16 b2 q1 k700 h16 d576/512 lse layout=paged:64 top_k=600:slots:mixed splits=2 cache_scales=b" + e4m3,
      "bf16 b2 q1 k2100 h16 d576/512 causal lse splits=3 k_lengths=2100,40 row_scales=128" + e4m3,
      "bf16 b2 q1 k1100 h40 d576/512 lse softcap=5 layout=paged:64 splits=2 row_scales=128" + e4m3,
      "bf16 b2 q1 k700 h12 d576/512 lse layout=paged:64 top_k=600:slots:mixed splits=3 row_scales=128" + e4m3,
      "bf16 b1 q2 k1100 h20 d512 causal lse sink splits=2 row_scales=64" + e4m3,
      "bf16 b2 q1 k700 h16 d512 lse layout=paged:64 top_k=600:slots:mixed splits=3 row_scales=64" + e4m3};
  int index = 0;
  for (const std::string& words : calls)
    if (in_part(index++, 2)) has_the_bits_of_two(words);
}

TEST_P(LatentOneLaunch, ShowsNotWhoArrivesLast) {
  const std::string rows = std::string(GetParam()) == "gfx942" ? "cache=e4m3_fnuz" : "cache=e4m3";
  for (const std::string& words : {std::string("bf16 b3 q1 k3000 h16 d576/512 lse splits=3 k_lengths=3000,1024,70"),
                                   std::string("bf16 b1 q2 k900 h40 d576/512 lse top_k=600 splits=3"),
                                   "bf16 b2 q1 k900 h16 d576/512 lse top_k=600 splits=3 row_scales=128 " + rows}) {
    SCOPED_TRACE(words);
    const LatentOutput two = run(words, 2);
    for (const Schedule& schedule : schedules) {
      set_schedule(schedule.order, schedule.seed);
      EXPECT_EQ(run(words, 1), two);
    }
  }
}

// Counters are zeros behind each launch, whatever number of runs came before on the stream.
TEST_P(LatentOneLaunch, LeavesCountersForAnyOther) {
  const char* const three = "bf16 b2 q1 k3000 h16 d576/512 lse splits=3";
  const char* const ragged = "bf16 b5 q1 k2100 h16 d576/512 lse splits=3 k_lengths=2100,40,0,1025,1024";
  const LatentOutput of_three = run(three, 2);
  const LatentOutput of_ragged = run(ragged, 2);
  for (int turn = 0; turn < 3; ++turn) {
    EXPECT_EQ(run(three, 1), of_three) << turn;
    EXPECT_EQ(run(ragged, 1), of_ragged) << turn;
    EXPECT_EQ(run(ragged, 1), of_ragged) << turn;
  }
}

// Rounds follow each other over the same workspace and the same counters.
TEST_P(LatentOneLaunch, GoesInRounds) {
  const std::string words = "bf16 b3 q1 k1500 h8 d576/512 lse k_lengths=1500,40,1025 splits=2";
  const LatentOutput two = run(words, 2);
  const LatentArrays arrays = latent_arrays("bf16 b3 q1 k1500 h8 d576/512 lse k_lengths=1500,40,1025 launches=1");
  const LatentOutput rounds = run_latent(engine_.get(), arrays, [](wavejit_attention_latent_arguments& call) {
    call.split.workspace_bytes = call.split.workspace_bytes / 3;
  });
  EXPECT_EQ(rounds.status, WAVEJIT_OK) << rounds.detail;
  EXPECT_THAT(rounds.kernel_spec, HasSubstr(" merged"));
  EXPECT_EQ(rounds, two);
}

TEST_P(LatentOneLaunch, IsAskedForByOneFlag) {
  const LatentArrays arrays = latent_arrays("bf16 b1 q1 k1100 h8 d576/512 splits=2");
  const LatentOutput both = run_latent(engine_.get(), arrays, [](wavejit_attention_latent_arguments& call) {
    call.head.flags |= WAVEJIT_ONE_LAUNCH | WAVEJIT_TWO_LAUNCHES;
  });
  EXPECT_EQ(both.status, WAVEJIT_INVALID_ARGUMENT);
  EXPECT_THAT(both.detail, HasSubstr("flags = 96"));
  EXPECT_THAT(both.detail, HasSubstr("32 (one launch) or 64 (two launches)"));
}

INSTANTIATE_TEST_SUITE_P(Targets, LatentOneLaunch, ::testing::Values("gfx942", "gfx950"),
                         [](const auto& parameter) { return std::string(parameter.param); });

// An aborted launch leaves its counters anywhere. Nobody counts there again: the process has lost its device.
TEST(LatentOneLaunchAborted, IsTheLastOfItsProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto aborted = [] {
    setenv("WAVEJIT_SIM_INSTRUCTION_LIMIT", "3000", 1);
    const Engine engine{"gfx950"};
    const LatentArrays arrays = latent_arrays("bf16 b2 q1 k2100 h8 d320/256 splits=3 launches=1");
    const LatentOutput first = run_latent(engine.get(), arrays);
    std::string second;
    try {
      second = run_latent(engine.get(), arrays).detail;
    } catch (const std::runtime_error& error) {
      second = error.what();
    }
    std::exit(first.status == WAVEJIT_DEVICE_ERROR && second.contains("hipErrorLaunchFailure") ? 0 : 1);
  };
  EXPECT_EXIT(aborted(), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace wavejit::tests
