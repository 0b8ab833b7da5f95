// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Half of the tokens are padding, zeros as models write them: 129 of 256, without a causal mask. A padded key's score
// is 0 and exp(0) is 1, so a kernel that counted them would scale every row (37 % off: the case that others' guard of
// padding was written for). The call with lengths gives the bits of the call without padding.
#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <vector>

#include "support/attention_run.h"

namespace wavejit::tests {
namespace {

constexpr int tokens = 129;
constexpr int padded_tokens = 256;
constexpr int heads = 2;

std::vector<float> with_zeros_behind(std::vector<float> values, int head_dim) {
  values.resize(std::size_t(padded_tokens) * heads * head_dim);
  return values;
}

class HalfPadding : public ::testing::TestWithParam<std::string> {};

TEST_P(HalfPadding, ChangesNoBit) {
  Engine engine(GetParam());
  for (const Storage storage : {Storage::fp16, Storage::bf16})
    for (const int head_dim : {64, 128}) {
      SCOPED_TRACE(head_dim);
      const AttentionCase plain = make_case(storage, 1, tokens, tokens, heads, heads, head_dim, false, 31);
      AttentionCase padded = plain;
      AttentionInputs& in = padded.inputs;
      in.query_length = in.key_length = padded_tokens;
      for (std::vector<float>* values : {&in.q, &in.k, &in.v}) *values = with_zeros_behind(*values, head_dim);
      in.key_lengths = {tokens};
      const AttentionOutput expected = run_attention(engine.get(), plain);
      const AttentionOutput got = run_attention(engine.get(), padded);
      ASSERT_EQ(expected.status, WAVEJIT_OK) << expected.detail;
      ASSERT_EQ(got.status, WAVEJIT_OK) << got.detail;
      EXPECT_EQ(got.reports, "");
      EXPECT_EQ(compare_rows(plain, attention_reference(plain.inputs), expected).wrong(), "");
      ASSERT_GE(got.o.size(), expected.o.size());
      EXPECT_TRUE(std::vector(got.o.begin(), got.o.begin() + std::ssize(expected.o)) == expected.o);
      for (int head = 0; head < heads; ++head)
        for (int row = 0; row < tokens; ++row)
          ASSERT_EQ(got.lse[std::size_t(head) * padded_tokens + row], expected.lse[std::size_t(head) * tokens + row]);
      // Without the lengths the padding counts: the case shows what it is for.
      in.key_lengths.clear();
      EXPECT_NE(run_attention(engine.get(), padded).lse.front(), expected.lse.front());
    }
}

INSTANTIATE_TEST_SUITE_P(All, HalfPadding, ::testing::Values("gfx942", "gfx950", "gfx1201"));

}  // namespace
}  // namespace wavejit::tests
