// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A bias by tile: few rows, the least numbers, keys of hidden tiles, and what is refused. Against float64 and beside the
// same bias without the flag it is rows of value_rows.txt.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "attention/modified.h"
#include "attention/value_biases.h"

namespace wavejit::tests {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr float hidden = -std::numeric_limits<float>::infinity();

class BiasByTile : public ::testing::TestWithParam<std::string> {
 protected:
  Pipelines pipelines_{GetParam()};
};

// Few rows over many keys, as trees of speculation have them: their keys are split as without the flag.
TEST_P(BiasByTile, LeavesFewRowsAsTheyAre) {
  AttentionCase which = make_case(Storage::bf16, 1, 9, 2200, 8, 2, 64, false, 785);
  add_bias(which, 1, 1, 1.0, 786);
  const std::vector<int> parent = {-1, 0, 0, 1, 1, 2, 3, 3, 5};
  for (int row = 0; row < 9; ++row)
    for (int key = 0; key < 2200; ++key) {
      bool sees = key < 2200 - 9;
      for (int at = row; at >= 0; at = parent[static_cast<std::size_t>(at)]) sees |= key == 2200 - 9 + at;
      which.inputs.bias[(static_cast<std::size_t>(row) * 2200) + static_cast<std::size_t>(key)] = sees ? 0 : hidden;
    }
  const AttentionOutput wanted = pipelines_.run(which);
  which.bias_by_tile = true;
  const AttentionOutput output = pipelines_.check(which);
  EXPECT_EQ(output.kernel_spec, wanted.kernel_spec);
  EXPECT_TRUE(output.o == wanted.o);
  EXPECT_TRUE(bits_of(output.lse) == bits_of(wanted.lse));
  EXPECT_THAT(output.kernel_spec, HasSubstr(" split="));
}

// The least numbers hide nothing by themselves: where a row has no others, it is the mean.
TEST_P(BiasByTile, OfLeastNumbers) {
  AttentionCase which = make_case(Storage::bf16, 1, 130, 200, 2, 2, 64, false, 780);
  add_bias(which, 1, 1, 1.0, 6);
  change_bias(which, "tiles", 6);
  for (float& number : which.inputs.bias)
    if (std::isinf(number)) number = -0x1.FEp127F;
  const AttentionOutput wanted = pipelines_.run(which);
  EXPECT_THAT(wanted.kernel_spec, Not(HasSubstr("block_lists")));
  which.bias_by_tile = true;
  const AttentionOutput output = pipelines_.run(which);
  EXPECT_THAT(output.kernel_spec, HasSubstr(" bias_by_tile "));
  EXPECT_TRUE(output.o == wanted.o);
  EXPECT_TRUE(bits_of(output.lse) == bits_of(wanted.lse));
}

// What a hidden tile holds shows nowhere: beside the flag it is not multiplied by 0.
TEST_P(BiasByTile, DoesNotReadKeysOfHiddenTiles) {
  AttentionCase which = make_case(Storage::fp16, 1, 128, 192, 1, 1, 64, false, 790);
  AttentionInputs& in = which.inputs;
  in.bias_batches = in.bias_heads = 1;
  in.bias.assign(std::size_t{128} * 192, 0.0F);
  for (std::size_t row = 0; row < 128; ++row)
    for (std::size_t key = 64; key < 128; ++key) in.bias[(row * 192) + key] = hidden;
  which.bias_by_tile = true;
  const AttentionOutput wanted = pipelines_.run(which);
  for (std::size_t at = std::size_t{64} * 64; at < std::size_t{128} * 64; ++at)
    in.k[at] = in.v[at] = std::numeric_limits<float>::quiet_NaN();
  const AttentionOutput output = pipelines_.run(which);
  EXPECT_TRUE(output.o == wanted.o);
  EXPECT_TRUE(bits_of(output.lse) == bits_of(wanted.lse));
}

INSTANTIATE_TEST_SUITE_P(All, BiasByTile, ::testing::Values("gfx942", "gfx950"),
                         [](const ::testing::TestParamInfo<std::string>& info) { return info.param; });

TEST(BiasByTileRefusals, NameTheField) {
  Engine engine("gfx950");
  AttentionCase which = make_case(Storage::bf16, 1, 40, 70, 2, 1, 64, false, 795);
  which.bias_by_tile = true;
  const auto expect = [&](Engine& of, const std::string& detail, const ChangeForwardCall& change) {
    const AttentionOutput output = run_attention(of.get(), which, change);
    EXPECT_NE(output.status, WAVEJIT_OK) << detail;
    EXPECT_THAT(output.detail, HasSubstr(detail));
  };
  using Call = wavejit_attention_forward_arguments;
  expect(engine, "flags = WAVEJIT_BIAS_BY_TILE without a bias; accepted: it beside a bias", {});
  add_bias(which, 1, 1, 1.0, 796);
  expect(engine, "flags = WAVEJIT_BIAS_BY_TILE beside local chunks; accepted: mask none, causal or a window",
         [](Call& call) {
           call.mask.bits = WAVEJIT_MASK_CAUSAL | WAVEJIT_MASK_CHUNKED;
           call.mask.local_chunk = 7;
         });
  Engine other("gfx1201");
  expect(other, "flags = WAVEJIT_BIAS_BY_TILE: ", {});
  which.inputs.key_lengths = {70};
  which.pages = Pages{.size = 16};
  expect(engine, "flags = WAVEJIT_BIAS_BY_TILE beside pages; accepted: dense or packed keys", {});
}

}  // namespace
}  // namespace wavejit::tests
