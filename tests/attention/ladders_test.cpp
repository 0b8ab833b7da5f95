// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Ladders move work and no bits: every ladder of a pipeline against the generic pipeline, whose results stand against
// float64 (value_rows.txt), and one case of each against float64 itself.
#include "templates/attention_forward/kernel/ladders.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <format>
#include <string>
#include <tuple>
#include <vector>

#include "attention/modified.h"
#include "attention/schedules.h"
#include "support/attention_run.h"
#include "support/part.h"

namespace wavejit::tests {
namespace {

using attention_forward::Ladder;
using attention_forward::Pipeline;

using Combination = std::tuple<Ladder, int>;

const char* target_of(Pipeline pipeline) { return pipeline == Pipeline::dualwave ? "gfx950" : "gfx942"; }

std::vector<Ladder> all_ladders() {
  std::vector<Ladder> all;
  for (const Pipeline pipeline : attention_forward::all_pipelines)
    for (const Ladder& ladder : attention_forward::ladders(pipeline)) all.push_back(ladder);
  return all;
}

wavejit_engine_options with_pipeline(const std::string& pipeline) {
  wavejit_engine_options options{};
  options.pipeline = pipeline.c_str();
  return options;
}

class Ladders : public ::testing::TestWithParam<Combination> {
 protected:
  static const Ladder& ladder() { return std::get<0>(GetParam()); }
  static int head_dim() { return std::get<1>(GetParam()); }

  void expect_bits_of_generic(const AttentionCase& which, bool against_float64 = false) {
    set_schedule(WAVEJIT_SIMGPU_IN_ORDER, 1);
    const AttentionOutput wanted = run_attention(generic_.get(), which);
    ASSERT_EQ(wanted.status, WAVEJIT_OK) << wanted.detail;
    for (const Schedule& schedule : schedules) {
      SCOPED_TRACE(std::format("schedule {}", static_cast<int>(schedule.order)));
      set_schedule(schedule.order, schedule.seed);
      const AttentionOutput output = run_attention(engine_.get(), which);
      ASSERT_EQ(output.status, WAVEJIT_OK) << output.detail << output.reports;
      const bool standard = ladder().name == attention_forward::standard_ladder;
      EXPECT_THAT(output.kernel_spec, ::testing::HasSubstr(std::format(" pipeline={} ", to_text(ladder().pipeline))));
      EXPECT_EQ(output.kernel_spec.contains(std::format(" ladder={} ", ladder().name)), !standard)
          << output.kernel_spec;
      EXPECT_EQ(output.reports, "");
      EXPECT_TRUE(output.fence_intact) << "something outside O or LSE was written";
      EXPECT_TRUE(output.o == wanted.o) << "O differs from the generic pipeline's";
      EXPECT_TRUE(bits_of(output.lse) == bits_of(wanted.lse)) << "LSE differs from the generic pipeline's";
      if (!against_float64) continue;
      EXPECT_EQ(compare_rows(which, attention_reference(which.inputs), output).wrong(), "");
    }
  }

  std::string pinned_ = std::format("{} ladder={}", to_text(ladder().pipeline), ladder().name);
  Engine generic_{target_of(ladder().pipeline), with_pipeline("generic")};
  Engine engine_{target_of(ladder().pipeline), with_pipeline(pinned_)};
};

// 1 to 5 tiles, so that the walk over one, two and three tiles is there with and without an odd one, and maxima that
// jump, so that the rare rescale is.
TEST_P(Ladders, MoveWorkAndNoBits) {
  int index = 0;
  for (const int keys : {37, 128, 192, 256, 293}) {
    for (const Storage storage : {Storage::bf16, Storage::fp16}) {
      if (!in_part(index++, 5)) continue;
      SCOPED_TRACE(std::format("{} keys, {}", keys, storage == Storage::bf16 ? "bf16" : "fp16"));
      const bool causal = keys % 64 != 0;
      const double spread = storage == Storage::bf16 ? 12.0 : 1.0;
      expect_bits_of_generic(make_case(storage, 1, 256, keys, 2, 1, head_dim(), causal, 700 + keys, spread),
                             keys == 293 && storage == Storage::fp16);
      if (HasFailure()) return;
    }
  }
}

TEST_P(Ladders, MoveNoBitsOfModifiedScores) {
  AttentionCase which = make_case(Storage::bf16, 1, 256, 300, 2, 1, head_dim(), true, 71);
  which.inputs.softcap = 20;
  add_bias(which, 1, 2, 1.0, 72);
  add_alibi(which, 1);
  add_sink(which, 0.5);
  expect_bits_of_generic(which);
}

std::string name_of(const ::testing::TestParamInfo<Combination>& info) {
  const auto& [ladder, head_dim] = info.param;
  return std::format("{}_{}_d{}", to_text(ladder.pipeline), ladder.name, head_dim);
}
INSTANTIATE_TEST_SUITE_P(All, Ladders, ::testing::ValuesIn(half_of_combinations<Ladder, int>(all_ladders(), {64, 128})),
                         name_of);

}  // namespace
}  // namespace wavejit::tests
