// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Key lengths in device memory beyond the rows that there are. The diagonal stands where the length puts it, and keys
// beyond the rows do not exist: as in a call whose first row stands at that key. Nothing outside is read.
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "attention/modified.h"

namespace wavejit::tests {
namespace {

class ToldLengths : public ::testing::TestWithParam<std::string> {
 protected:
  AttentionOutput run(const AttentionCase& which) {
    set_schedule(WAVEJIT_SIMGPU_REVERSE, 1);
    AttentionOutput output = run_attention(engine_.get(), which);
    EXPECT_EQ(output.status, WAVEJIT_OK) << output.detail;
    EXPECT_EQ(output.reports, "");
    EXPECT_TRUE(output.fence_intact);
    return output;
  }

  // `told`: the length that the call gives for all sequences, whose keys all exist. Row 0 stands at key told − rows.
  void expect_diagonal_of(std::int32_t told, AttentionCase which) {
    SCOPED_TRACE(told);
    AttentionInputs& in = which.inputs;
    in.key_lengths.assign(static_cast<std::size_t>(in.batch), in.key_length);
    AttentionCase at_that_key = which;
    at_that_key.inputs.prefix = told - in.query_length;
    const AttentionOutput wanted = run(at_that_key);
    EXPECT_EQ(compare_rows(at_that_key, attention_reference(at_that_key.inputs), wanted).wrong(), "");
    which.told_key_lengths = std::vector<std::int32_t>(static_cast<std::size_t>(in.batch), told);
    const AttentionOutput output = run(which);
    EXPECT_TRUE(output.o == wanted.o) << output.kernel_spec;
    EXPECT_TRUE(bits_of(output.lse) == bits_of(wanted.lse)) << output.kernel_spec;
  }

  Engine engine_{GetParam()};
};

// 51 of 48 rows and four queries: the first stands at key 47, the others behind the last key, and all see 48 keys. They
// saw 45, 46, 47 and 48.
TEST_P(ToldLengths, BeyondTheRowsMoveNoDiagonal) {
  AttentionCase which = make_case(Storage::bf16, 2, 4, 48, 4, 2, 64, true, 1);
  expect_diagonal_of(51, which);
  expect_diagonal_of(50, which);
  which.pages = Pages{.size = 16};
  expect_diagonal_of(51, which);
  AttentionCase window = make_case(Storage::fp16, 1, 40, 200, 2, 1, 128, false, 2);
  window.inputs.window = true;
  window.inputs.window_left = 30;
  window.inputs.window_right = 2;
  expect_diagonal_of(217, window);
  window.pages = Pages{.size = 64};
  expect_diagonal_of(240, window);
  AttentionCase slopes = make_case(Storage::bf16, 1, 3, 100, 4, 1, 64, true, 3);
  add_alibi(slopes, 1);
  expect_diagonal_of(102, slopes);
  AttentionCase split = make_case(Storage::bf16, 1, 2, 2100, 4, 1, 128, true, 4);
  split.splits = 3;
  expect_diagonal_of(2102, split);
}

// No length is so large that a sum overflows: all rows see all keys.
TEST_P(ToldLengths, OfAnySizeShowAllKeys) {
  AttentionCase which = make_case(Storage::bf16, 1, 5, 70, 2, 1, 64, true, 5);
  which.inputs.key_lengths = {70};
  AttentionCase without_diagonal = which;
  without_diagonal.inputs.causal = false;
  const AttentionOutput wanted = run(without_diagonal);
  for (const std::int32_t told : {75, 1 << 29, std::numeric_limits<std::int32_t>::max()}) {
    which.told_key_lengths = std::vector<std::int32_t>{told};
    const AttentionOutput output = run(which);
    EXPECT_TRUE(output.o == wanted.o) << told;
    EXPECT_TRUE(bits_of(output.lse) == bits_of(wanted.lse)) << told;
  }
}

INSTANTIATE_TEST_SUITE_P(All, ToldLengths, ::testing::Values("gfx942", "gfx950", "gfx1201"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace wavejit::tests
