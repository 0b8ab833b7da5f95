// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Calls whose workspace has no room for the parts of all sequences at once: they go in rounds over what there is, and
// every round begins where the one before ended, in whatever form keys, lengths and modifiers come.
#include <gtest/gtest.h>

#include <format>
#include <string>
#include <vector>

#include "attention/modified.h"

namespace wavejit::tests {
namespace {

class SplitRounds : public ::testing::TestWithParam<std::string> {
 protected:
  static constexpr int queries = 2;
  static constexpr int heads = 4;
  static constexpr int head_dim = 64;
  static constexpr std::size_t chunks = 3;
  // docs/split-keys.md, "The workspace".
  static constexpr std::size_t bytes_of_sequence = std::size_t{queries} * heads * chunks * (head_dim + 4) * 4;

  // Sequences that end in other chunks, one of them without a key.
  static AttentionCase make(std::uint64_t seed) {
    const std::vector<std::int32_t> lengths = {2200, 0, 1025, 700, 2100};
    AttentionCase which =
        make_case(Storage::bf16, static_cast<int>(lengths.size()), queries, 2200, heads, 2, head_dim, true, seed);
    which.inputs.key_lengths = lengths;
    which.own_workspace = true;
    return which;
  }

  AttentionOutput run(const AttentionCase& which, const char* what) {
    AttentionOutput output = run_attention(engine_.get(), which);
    EXPECT_EQ(output.status, WAVEJIT_OK) << what << ": " << output.detail;
    EXPECT_EQ(output.reports, "") << what;
    EXPECT_TRUE(output.fence_intact) << what << ": something outside O, LSE or the workspace was written";
    return output;
  }

  void check(AttentionCase which, const char* what) {
    set_schedule(WAVEJIT_SIMGPU_REVERSE, 1);
    const AttentionOutput at_once = run(which, what);
    EXPECT_TRUE(at_once.kernel_spec.contains(" split=1024")) << at_once.kernel_spec;
    EXPECT_EQ(judge(which, attention_reference(which.inputs), at_once).wrong(), "") << what;
    const auto sequences = static_cast<std::size_t>(which.inputs.batch);
    for (const std::size_t fitting : {std::size_t{3}, std::size_t{1}, std::size_t{0}}) {
      which.withheld_workspace = (sequences - fitting) * bytes_of_sequence;
      const std::string at = std::format("{}, room for {} of {}", what, fitting, sequences);
      const AttentionOutput in_rounds = run(which, at.c_str());
      EXPECT_EQ(in_rounds.kernel_spec.contains(" split=1024"), fitting != 0) << at << ": " << in_rounds.kernel_spec;
      EXPECT_TRUE(in_rounds.o == at_once.o) << at << ": O differs";
      EXPECT_TRUE(bits_of(in_rounds.lse) == bits_of(at_once.lse)) << at << ": LSE differs";
    }
  }

  Engine engine_{GetParam()};
};

TEST_P(SplitRounds, DenseKeysAndEveryModifier) {
  AttentionCase which = make(860);
  add_bias(which, which.inputs.batch, heads, 1.0, 861);
  add_alibi(which, which.inputs.batch);
  add_sink(which, 1.0);
  check(which, "modified");
}

TEST_P(SplitRounds, LeftPadding) {
  AttentionCase which = make(862);
  which.first_keys = {0, 30, 1100, 5, 77};
  check(which, "dense");
  which.pages = Pages{.size = 16};
  check(which, "in pages");
}

TEST_P(SplitRounds, KeysInPages) {
  const AttentionCase dense = make(863);
  for (const auto& [what, pages] : {std::pair{"a table", Pages{.size = 16}},
                                    {"a list", Pages{.size = 64, .heads_first = true, .list = true}},
                                    {"vectorised", Pages{.size = 16, .layout = WAVEJIT_PAGES_VECTORISED}}}) {
    AttentionCase which = dense;
    which.pages = pages;
    check(which, what);
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, SplitRounds, ::testing::Values("gfx942", "gfx950"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace wavejit::tests
