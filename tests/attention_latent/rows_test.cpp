// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Each row of problems.txt and of list_problems.txt on the simulated GPU: against float64 before absorption, element by
// element, with the same bits under every order of waves.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>

#include "attention/schedules.h"
#include "attention_latent/latent_run.h"
#include "support/listed_problems.h"

namespace wavejit::tests {
namespace {

// Every row of O for a small problem, else some fifty spread over it: float64 takes longer than the simulated GPU.
std::int64_t step_of(const LatentArrays& arrays, const LatentOutput& output) {
  constexpr std::int64_t rows = 50;
  const std::int64_t all = static_cast<std::int64_t>(output.o.size()) / arrays.latent();
  return std::max<std::int64_t>(1, (all / rows) | 1);  // odd: no head of an even number is left out
}

class LatentRows : public ::testing::TestWithParam<ListedProblem> {
 protected:
  static LatentOutput run(const Engine& engine, const LatentArrays& arrays) {
    LatentOutput output = run_latent(engine.get(), arrays);
    EXPECT_EQ(output.status, WAVEJIT_OK) << output.detail << output.reports;
    EXPECT_EQ(output.reports, "");
    EXPECT_TRUE(output.fence_intact) << "something outside O or LSE was written";
    return output;
  }
};

TEST_P(LatentRows, MatchFloat64AndShowNoOrderOfWaves) {
  const auto& [target, words] = GetParam();
  const Engine engine(target);
  const LatentArrays arrays = latent_arrays(words);
  const LatentOutput first = same_under_all_schedules([&] { return run(engine, arrays); });
  EXPECT_EQ(wrong_latent(arrays, first, step_of(arrays, first)), "");
}

INSTANTIATE_TEST_SUITE_P(Keys, LatentRows, ::testing::ValuesIn(listed_problems("latent_list")), name_of_row);
INSTANTIATE_TEST_SUITE_P(KeyLists, LatentRows, ::testing::ValuesIn(listed_problems("latent_key_lists")), name_of_row);

}  // namespace
}  // namespace wavejit::tests
