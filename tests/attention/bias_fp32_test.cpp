// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A bias in f32 beside Q, K and V in 16 bits, as masks of frameworks are: added as it stands, not rounded to their
// type.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "attention/modified.h"
#include "attention/schedules.h"
#include "support/attention_run.h"

namespace wavejit::tests {
namespace {

class BiasFp32 : public ::testing::TestWithParam<const char*> {
 protected:
  Engine engine_{GetParam()};
};

// 300 + 0.1 j: neighbouring keys are a tenth apart, and a number of 16 bits is a quarter (fp16) or two (bf16) apart.
void add_fine_bias(AttentionCase& which) {
  AttentionInputs& in = which.inputs;
  in.bias_batches = 1;
  in.bias_heads = in.query_heads;
  in.bias.clear();
  for (int h = 0; h < in.query_heads; ++h)
    for (std::size_t row = 0; row < std::size_t(in.query_rows()); ++row)
      for (int j = 0; j < in.key_length; ++j)
        in.bias.push_back(300 + (0.1F * static_cast<float>(j)) - static_cast<float>(h));
  which.bias_fp32 = true;
}

TEST_P(BiasFp32, IsAddedAsItStands) {
  for (const Storage storage : {Storage::bf16, Storage::fp16}) {
    for (const auto& [queries, keys, head_dim, causal] :
         {std::tuple{65, 150, 64, true}, {3, 1100, 64, false}, {40, 90, 128, false}}) {
      AttentionCase which = make_case(storage, 1, queries, keys, 2, 1, head_dim, causal, 17);
      add_fine_bias(which);
      check_under_all_schedules(engine_, which);
    }
  }
}

// What would be lost: the same numbers rounded to the type of Q are another answer.
TEST_P(BiasFp32, IsNotTheRoundedOne) {
  set_schedule(WAVEJIT_SIMGPU_IN_ORDER, 1);
  AttentionCase which = make_case(Storage::bf16, 1, 8, 90, 1, 1, 64, false, 19);
  add_fine_bias(which);
  const AttentionOutput exact = run_attention(engine_.get(), which);
  ASSERT_EQ(exact.status, WAVEJIT_OK) << exact.detail;
  which.bias_fp32 = false;
  const AttentionOutput rounded = run_attention(engine_.get(), which);
  ASSERT_EQ(rounded.status, WAVEJIT_OK) << rounded.detail;
  float most = 0;
  for (std::size_t i = 0; i < exact.o.size(); ++i)
    most =
        std::max(most, std::fabs(from_storage(Storage::bf16, exact.o[i]) - from_storage(Storage::bf16, rounded.o[i])));
  EXPECT_GT(most, 0.1F);
}

INSTANTIATE_TEST_SUITE_P(All, BiasFp32, ::testing::Values("gfx942", "gfx950"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace wavejit::tests
