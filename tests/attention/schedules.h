// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One case under every wave schedule: within the bounds each time, and the same bits every time.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <span>

#include "support/attention_run.h"

namespace wavejit::tests {

struct Schedule {
  wavejit_simgpu_schedule order;
  std::uint64_t seed;
};
inline constexpr std::array schedules = {Schedule{WAVEJIT_SIMGPU_IN_ORDER, 1}, Schedule{WAVEJIT_SIMGPU_REVERSE, 2},
                                         Schedule{WAVEJIT_SIMGPU_RANDOM, 3}};

// What a call gives under the first order of waves; every other order must give an equal output.
template <typename Run>
auto same_under_all_schedules(Run run) {
  set_schedule(schedules.front().order, schedules.front().seed);
  const auto first = run();
  for (const Schedule& schedule : std::span(schedules).template subspan<1>()) {
    set_schedule(schedule.order, schedule.seed);
    EXPECT_TRUE(run() == first) << "the output depends on the wave schedule";
  }
  return first;
}

inline void check_under_all_schedules(Engine& engine, const AttentionCase& which) {
  const AttentionAnswer exact = attention_reference(which.inputs);
  AttentionOutput first;
  for (const Schedule& schedule : schedules) {
    set_schedule(schedule.order, schedule.seed);
    const AttentionOutput output = run_attention(engine.get(), which);
    ASSERT_EQ(output.status, WAVEJIT_OK) << output.detail << output.reports;
    EXPECT_EQ(output.reports, "");
    EXPECT_TRUE(output.fence_intact) << "something outside O or LSE was written";
    EXPECT_EQ(compare_rows(which, exact, output).wrong(), "");
    if (schedule.seed == schedules.front().seed) {
      first = output;
    } else {
      EXPECT_EQ(output.o, first.o) << "O depends on the wave schedule";
      EXPECT_THAT(output.lse, ::testing::Pointwise(::testing::Eq(), first.lse)) << "LSE depends on the wave schedule";
    }
  }
}

}  // namespace wavejit::tests
