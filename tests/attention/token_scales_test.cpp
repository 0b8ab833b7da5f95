// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Scales that each token of each kv head has for itself: what no row says (value_rows.txt).
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "attention/modified.h"
#include "attention/value_scales.h"

namespace wavejit::tests {
namespace {

class TokenScales : public ::testing::TestWithParam<std::string> {
 protected:
  static AttentionCase stored(const AttentionCase& which) {
    const wavejit_dtype type = GetParam() == "gfx942" ? WAVEJIT_E4M3_FNUZ : WAVEJIT_E4M3;
    return stored_in_bytes(which, bytes_of(which.inputs, type, attention::Extent::token_and_head, "any"));
  }
  AttentionOutput run(const AttentionCase& which) {
    set_schedule(WAVEJIT_SIMGPU_REVERSE, 3);
    AttentionOutput output = run_attention(engine_.get(), which);
    EXPECT_EQ(output.status, WAVEJIT_OK) << output.detail << output.reports;
    EXPECT_EQ(output.reports, "");
    EXPECT_TRUE(output.fence_intact);
    return output;
  }

  Engine engine_{GetParam()};
};

TEST_P(TokenScales, OneThatIsWrongShows) {
  AttentionCase which = stored(make_case(Storage::bf16, 1, 1, 70, 2, 1, 64, false, 13));
  const AttentionOutput right = run(which);
  const AttentionAnswer exact = attention_reference(which.inputs);
  for (const bool of_k : {true, false})
    for (const int key : {0, 37, 69}) {
      // The tensors stay: what the call is told of one number is not what the bytes were made with.
      AttentionCase wrong = which;
      std::vector<float>& scales = of_k ? wrong.bytes->k_scale : wrong.bytes->v_scale;
      std::vector<float>& values = of_k ? wrong.inputs.k : wrong.inputs.v;
      scales[static_cast<std::size_t>(key)] *= 8;
      for (std::size_t c = 0; c < 64; ++c) values[(static_cast<std::size_t>(key) * 64) + c] *= 8;
      const AttentionOutput output = run(wrong);
      EXPECT_FALSE(output.o == right.o);
      EXPECT_EQ(bits_of(output.lse) == bits_of(right.lse), !of_k);
      EXPECT_NE(compare_rows(which, exact, output).wrong(), "");
    }
}

TEST_P(TokenScales, RefusedByName) {
  const AttentionCase which = stored(make_case(Storage::bf16, 2, 1, 70, 4, 2, 64, false, 15));
  const auto refused = [&](const std::string& expected, const ChangeForwardCall& change) {
    const AttentionOutput output = run_attention(engine_.get(), which, change);
    EXPECT_EQ(output.status, WAVEJIT_INVALID_ARGUMENT) << expected;
    EXPECT_TRUE(output.detail.starts_with(expected)) << output.detail;
  };
  refused("k_scale.data = null", [](auto& call) { call.scales.k_scale.data = nullptr; });
  refused("v_scale.data = null", [](auto& call) { call.scales.v_scale.data = nullptr; });
  refused("k_scale.sizes[1]", [](auto& call) { call.scales.k_scale.sizes[1] = 1; });
  refused("v_scale.sizes[2]", [](auto& call) { call.scales.v_scale.sizes[2] = 4; });
  refused("k_scale.sizes[0]", [](auto& call) { call.scales.k_scale.sizes[0] = 3; });
  refused("v_scale.strides[1]", [](auto& call) { call.scales.v_scale.strides[1] = std::int64_t{1} << 31; });
  refused("k_scale.dtype", [](auto& call) { call.scales.k_scale.dtype = WAVEJIT_FP16; });
  refused("token_scales = 2", [](auto& call) { call.scales.token_scales = 2; });
  refused("k_scale.sizes[1]", [](auto& call) { call.scales.token_scales = 0; });
  refused("token_scales = 1; accepted: 0 beside", [](auto& call) { call.k.dtype = call.v.dtype = WAVEJIT_BF16; });
}

INSTANTIATE_TEST_SUITE_P(All, TokenScales, ::testing::Values("gfx942", "gfx950"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace wavejit::tests
