// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Key lengths in device memory beyond the rows that there are, of any size. Where they put the diagonal, rows of value_rows.txt
// say. Nothing outside is read.
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

  Engine engine_{GetParam()};
};

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
