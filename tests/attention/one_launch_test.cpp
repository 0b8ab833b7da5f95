// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Parts that the last workgroup to arrive merges, in the launch that leaves them: counters whatever was launched before,
// and an aborted launch. Bits beside a second launch's are rows of value_rows.txt.
#include <gtest/gtest.h>

#include <cstdlib>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "attention/modified.h"

namespace wavejit::tests {
namespace {

class OneLaunch : public ::testing::TestWithParam<const char*> {
 protected:
  AttentionOutput run(AttentionCase which, std::uint32_t launches) const {
    which.flags |= launches;
    AttentionOutput output = run_attention(engine_.get(), which);
    EXPECT_EQ(output.status, WAVEJIT_OK) << output.detail << output.reports;
    EXPECT_EQ(output.reports, "");
    EXPECT_TRUE(output.fence_intact) << "something outside O, LSE or the workspace was written";
    return output;
  }

  static void expect_same(const AttentionOutput& one, const AttentionOutput& two) {
    EXPECT_TRUE(one.o == two.o) << "O differs";
    EXPECT_TRUE(bits_of(one.lse) == bits_of(two.lse)) << "LSE differs";
  }

  Engine engine_{GetParam()};
};

// Counters are zeros behind each launch, whatever number of runs came before on the stream.
TEST_P(OneLaunch, LeavesCountersForAnyOther) {
  std::vector<std::pair<AttentionCase, AttentionOutput>> calls;
  for (const int splits : {2, 3, 5}) {
    AttentionCase which = make_case(Storage::bf16, splits, 1, 5000, 8, 1, 64, false, 750 + splits);
    which.splits = splits;
    which.engine_workspace = true;
    calls.emplace_back(which, run(which, WAVEJIT_TWO_LAUNCHES));
  }
  for (int turn = 0; turn < 2; ++turn)
    for (const auto& [which, two] : calls) expect_same(run(which, WAVEJIT_ONE_LAUNCH), two);
}

INSTANTIATE_TEST_SUITE_P(Targets, OneLaunch, ::testing::Values("gfx942", "gfx950"),
                         [](const auto& parameter) { return std::string(parameter.param); });

// An aborted launch leaves its counters anywhere. Nobody counts there again: the process has lost its device.
TEST(OneLaunchAborted, IsTheLastOfItsProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto aborted = [] {
    setenv("WAVEJIT_SIM_INSTRUCTION_LIMIT", "1000", 1);
    const Engine engine{"gfx950"};
    AttentionCase which = make_case(Storage::bf16, 2, 1, 2100, 8, 1, 128, false, 790);
    which.splits = 3;
    which.flags = WAVEJIT_ONE_LAUNCH;
    const AttentionOutput first = run_attention(engine.get(), which);
    std::string second;
    try {
      second = run_attention(engine.get(), which).detail;
    } catch (const std::runtime_error& error) {
      second = error.what();
    }
    std::exit(first.status == WAVEJIT_DEVICE_ERROR && second.contains("hipErrorLaunchFailure") ? 0 : 1);
  };
  EXPECT_EXIT(aborted(), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace wavejit::tests
