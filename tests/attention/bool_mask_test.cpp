// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Bool masks: what is refused. Others are rows of value_rows.txt.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "attention/bool_masks.h"

namespace wavejit::tests {
namespace {

using ::testing::HasSubstr;

TEST(BoolMaskRefusals, NameTheField) {
  Engine engine("gfx950");
  AttentionCase which = make_case(Storage::bf16, 1, 40, 70, 2, 1, 64, false, 460);
  set_mask(which, 1, 1, [](int, int, int, int) { return true; });
  const auto expect = [&](const std::string& detail, const ChangeForwardCall& change) {
    const AttentionOutput output = run_attention(engine.get(), which, change);
    EXPECT_NE(output.status, WAVEJIT_OK) << detail;
    EXPECT_THAT(output.detail, HasSubstr(detail));
  };
  using Call = wavejit_attention_forward_arguments;
  expect("bool_mask.dtype = 1 (fp16); accepted: 8 (int8)",
         [](Call& call) { call.modifiers.bool_mask.dtype = WAVEJIT_FP16; });
  expect("bool_mask.sizes[3] = 69; accepted: 70", [](Call& call) { call.modifiers.bool_mask.sizes[3] = 69; });
  expect("bool_mask.strides[3] = 2; accepted: 1", [](Call& call) { call.modifiers.bool_mask.strides[3] = 2; });
  expect("bool_mask.strides[2] = -71", [](Call& call) { call.modifiers.bool_mask.strides[2] = -71; });
  expect("bool_mask beside local chunks; accepted: mask none, causal or a window", [](Call& call) {
    call.mask.bits = WAVEJIT_MASK_CAUSAL | WAVEJIT_MASK_CHUNKED;
    call.mask.local_chunk = 7;
  });
  add_bias(which, 1, 1, 1.0, 461);
  expect("bool_mask beside bias; accepted: a bias alone, whose −inf hides", {});
  which.inputs.bias.clear();
  Engine other("gfx1201");
  const AttentionOutput output = run_attention(other.get(), which);
  EXPECT_EQ(output.status, WAVEJIT_UNSUPPORTED);
  EXPECT_THAT(output.detail, HasSubstr("bool_mask: "));
}

}  // namespace
}  // namespace wavejit::tests
