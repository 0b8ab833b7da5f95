// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Rows of value_rows.txt on the simulated GPU: against float64, under orders of waves by turns. Behind the colon of a row stand
//
//   heads_outside, lse_by_token  how rows of O and LSE lie (merge_run.h)
//   stacks=<n>,<n>               how many parts each tensor holds
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "attention/modified.h"
#include "attention_merge/merge_run.h"
#include "support/worded_rows.h"
#include "templates/attention/call/data_type.h"
#include "templates/attention_merge/call/descriptor.h"

namespace wavejit::tests {
namespace {

std::vector<WordedRow> rows() {
  return worded_rows("attention_merge/value_rows.txt", {.words = {"heads_outside", "lse_by_token", "stacks"},
                                                        .targets = "gfx942,gfx950,gfx1201",
                                                        .name = name_of_words});
}

MergeCase case_of(const WordedRow& row) {
  const auto said = attention_merge::parse_descriptor("attention_merge " + row.descriptor);
  if (!said) throw std::runtime_error(said.error().detail);
  MergeCase which = filled({.type = static_cast<wavejit_dtype>(attention::told_type(said->parts)),
                            .out = static_cast<wavejit_dtype>(attention::told_type(said->out)),
                            .batch = said->batch,
                            .tokens = said->tokens,
                            .heads = said->heads,
                            .dims = said->dims,
                            .heads_outside = row.says("heads_outside"),
                            .lse_by_token = row.says("lse_by_token"),
                            .lse = said->lse},
                           static_cast<std::size_t>(said->count), seed_of(row.descriptor), said->empty);
  for (const std::int32_t count : numbers_of(row.word("stacks"))) which.stacks.push_back(count);
  return which;
}

class MergeRows : public ::testing::TestWithParam<WordedRow> {};

TEST_P(MergeRows, MatchFloat64) {
  const Engine engine(GetParam().target);
  const Schedule& schedule = schedules[GetParam().name.size() % schedules.size()];
  set_schedule(schedule.order, schedule.seed);
  const auto run = [&](const MergeCase& which) {
    MergeOutput output = run_merge(engine.get(), which);
    EXPECT_EQ(output.status, WAVEJIT_OK) << output.detail << output.reports;
    EXPECT_EQ(output.reports, "");
    EXPECT_TRUE(output.rest_intact) << "something outside of the result was written";
    return output;
  };
  MergeCase which = case_of(GetParam());
  const MergeOutput output = run(which);
  EXPECT_EQ(difference_from_exact(which, output), "");
  if (which.stacks.empty() || which.parts.size() > WAVEJIT_MAX_ATTENTION_PARTS) return;
  which.stacks.clear();
  const MergeOutput of_each = run(which);
  EXPECT_EQ(of_each.o, output.o);
  EXPECT_EQ(bits_of(of_each.lse), bits_of(output.lse));
}

INSTANTIATE_TEST_SUITE_P(Listed, MergeRows, ::testing::ValuesIn(rows()), name_in_row);

}  // namespace
}  // namespace wavejit::tests
