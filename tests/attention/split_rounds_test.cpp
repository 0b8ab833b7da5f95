// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Calls whose workspace cannot hold the parts of all sequences at once. They run in rounds that reuse it. Packed queries
// here, all else is rows of value_rows.txt.
#include <gtest/gtest.h>

#include <format>
#include <string>
#include <vector>

#include "attention/modified.h"
#include "support/part.h"

namespace wavejit::tests {
namespace {

class SplitRounds : public ::testing::TestWithParam<std::string> {
 protected:
  static constexpr int queries = 2;
  AttentionOutput run(const AttentionCase& which, const char* what) {
    AttentionOutput output = run_attention(engine_.get(), which);
    EXPECT_EQ(output.status, WAVEJIT_OK) << what << ": " << output.detail;
    EXPECT_EQ(output.reports, "") << what;
    EXPECT_TRUE(output.fence_intact) << what << ": something outside O, LSE or the workspace was written";
    return output;
  }

  Engine engine_{GetParam()};
};

// Packed queries of few rows: parts that are too many to stand side by side, since the longest sequence may have two
// million keys, stand by the sequence. Against the same call that is told how long its longest sequence is.
TEST_P(SplitRounds, PackedQueries) {
  constexpr std::int64_t longest = std::int64_t{2048} * 1024;
  constexpr std::size_t bytes_of_each = std::size_t{queries} * 32 * 2048 * (128 + 4) * 4;  // 66 MiB
  const std::vector<std::int32_t> rows = {1, 2, 0, 1, 2, 1, 2, 1, 1};
  const std::vector<std::int32_t> keys = {1030, 2, 77, 1100, 0, 1025, 20, 3, 1050};
  AttentionCase which = make_case(Storage::bf16, static_cast<int>(rows.size()), 1, 1100, 32, 2, 128, true, 864);
  AttentionInputs& in = which.inputs;
  in.key_lengths = keys;
  in.query_starts = {0};
  for (const std::int32_t count : rows) in.query_starts.push_back(in.query_starts.back() + count);
  in.query_length = queries;
  in.q = normal_values(which.storage, std::size_t(in.query_rows()) * in.query_heads * in.head_dim, 1.0, 865);
  add_alibi(which, which.inputs.batch);
  set_schedule(WAVEJIT_SIMGPU_REVERSE, 1);
  const AttentionOutput near = run(which, "side by side");
  EXPECT_EQ(compare_rows(which, attention_reference(which.inputs), near).wrong(), "");
  int index = 0;
  for (const auto& [what, pages] : {std::pair{"pages of whole tiles", Pages{.size = 64, .list = true}},
                                    {"pages", Pages{.size = 16, .list = true}}}) {
    if (!in_part(index++, 2)) continue;
    which.pages = pages;
    which.told_longest_keys = longest;
    which.own_workspace = true;
    // Three sequences a round are what is asked for. Where keys stand does not change how rounds begin.
    for (const std::size_t fitting : {std::size_t{3}, std::size_t{1}, std::size_t{0}}) {
      if (fitting != 3 && which.pages->size == 16) continue;
      which.withheld_workspace = (3 - fitting) * bytes_of_each;
      const std::string at = std::format("{}, room for {} of {}", what, fitting, rows.size());
      const AttentionOutput far = run(which, at.c_str());
      EXPECT_EQ(far.kernel_spec.contains(" rows=few"), fitting != 0) << at << ": " << far.kernel_spec;
      EXPECT_TRUE(far.o == near.o) << at << ": O differs";
      EXPECT_TRUE(bits_of(far.lse) == bits_of(near.lse)) << at << ": LSE differs";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, SplitRounds, ::testing::Values("gfx942", "gfx950"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace wavejit::tests
