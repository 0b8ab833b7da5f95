// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Each row of problems.txt on the simulated GPU: gradients against float64, element by element, with the same bits under
// every order of waves and by the kernels of more workgroups.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "attention/schedules.h"
#include "attention_backward/backward_run.h"
#include "support/listed_problems.h"
#include "targets/targets.h"

namespace wavejit::tests {
namespace {

using ::testing::HasSubstr;

class GradientRows : public ::testing::TestWithParam<ListedProblem> {
 protected:
  static BackwardOutput run(const Engine& engine, const Arrays& arrays) {
    BackwardOutput output = run_backward(engine.get(), arrays);
    EXPECT_EQ(output.status, WAVEJIT_OK) << output.detail << output.reports;
    EXPECT_EQ(output.reports, "");
    EXPECT_TRUE(output.fence_intact) << "something outside the gradients or the workspace was written";
    return output;
  }

  // A call that does not continue the sums from before must give wrong gradients.
  static void expect_others_without_sums_before(const Engine& engine, const Arrays& arrays) {
    Arrays without = arrays;
    without.sums_before = 0;
    for (auto* before : {&without.dq_before, &without.dk_before, &without.dv_before}) before->clear();
    EXPECT_NE(wrong_gradients(arrays, run(engine, without)), "");
  }

  // Calls with more workgroups have kernels of their own on some targets, and the same bits.
  static void has_the_bits_of_workgroups(const BackwardOutput& wanted, const Arrays& arrays, int rows,
                                         const std::string& blocks) {
    const std::string pipeline = "auto tile_queries=" + std::to_string(rows);
    wavejit_engine_options options{};
    options.size = sizeof options;
    options.pipeline = pipeline.c_str();
    const Engine engine(GetParam().target, options);
    const BackwardOutput output = run(engine, arrays);
    EXPECT_THAT(output.kernel_spec, HasSubstr(blocks));
    EXPECT_TRUE(output == wanted) << output.kernel_spec;
  }
};

TEST_P(GradientRows, MatchFloat64AndShowNoOrderOfWaves) {
  const auto& [target, words] = GetParam();
  const Engine engine(target);
  const Arrays arrays = backward_arrays(words);
  const BackwardOutput first = same_under_all_schedules([&] { return run(engine, arrays); });
  EXPECT_EQ(wrong_gradients(arrays, first), "");
  if (arrays.sums_before != 0) expect_others_without_sums_before(engine, arrays);
  if (targets::find_target(target)->wave_size < 64) return;
  // With few keys, as all of these, two waves share a block of them.
  set_schedule(WAVEJIT_SIMGPU_IN_ORDER, 1);
  const bool has_narrow = !words.contains("softcap") && (words.contains(" d64") || words.contains(" d128"));
  has_the_bits_of_workgroups(first, arrays, 128, has_narrow ? "blocks=1" : "");
  const bool has_wide = target == "gfx950" && words.contains(" d128") && !words.contains(" bias=");
  has_the_bits_of_workgroups(first, arrays, 256, has_wide ? "blocks=2" : "");
}

INSTANTIATE_TEST_SUITE_P(Listed, GradientRows, ::testing::ValuesIn(listed_problems("gradients_list")), name_of_row);

}  // namespace
}  // namespace wavejit::tests
