// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Bool masks: against float64 on every pipeline under every schedule, and bit by bit beside a bias that hides the same
// keys, and beside masks that show the same ones.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "attention/bool_masks.h"
#include "support/part.h"

namespace wavejit::tests {
namespace {

using ::testing::HasSubstr;

class BoolMasks : public ::testing::TestWithParam<std::string> {
 protected:
  Pipelines pipelines_{GetParam()};
};

TEST_P(BoolMasks, MatchFloat64) {
  AttentionCase which = make_case(Storage::bf16, 2, 290, 333, 2, 1, 128, false, 400);
  set_mask(which, 2, 2, random_blocks(which, 1));
  which.own_workspace = true;
  const AttentionOutput output = pipelines_.check(which);
  EXPECT_THAT(output.kernel_spec, HasSubstr(" bool_mask "));
  // Rows that see no key.
  EXPECT_EQ(output.lse[288], -std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::all_of(output.o.begin() + (std::size_t{288} * 2 * 128),
                          output.o.begin() + (std::size_t{290} * 2 * 128),
                          [](std::uint16_t bits) { return bits == 0; }));
  which = make_case(Storage::fp16, 2, 65, 130, 4, 2, 64, false, 401);
  set_mask(which, 1, 4, random_blocks(which, 2));
  pipelines_.check(which);
}

// Scores are modified either way there, so that a bias of 0 adds nothing to them.
TEST_P(BoolMasks, HaveTheBitsOfABiasThatHides) {
  AttentionCase which = make_case(Storage::bf16, 1, 290, 333, 2, 1, 64, false, 410);
  which.inputs.softcap = 9;
  set_mask(which, 1, 2, random_blocks(which, 4));
  const AttentionOutput masked = pipelines_.check(which);
  AttentionInputs& in = which.inputs;
  in.bias_heads = 2;
  for (const std::uint8_t byte : in.shown) in.bias.push_back(byte != 0 ? 0 : -std::numeric_limits<float>::infinity());
  in.shown.clear();
  expect_same_bits(masked, pipelines_.run(which));
}

TEST_P(BoolMasks, HaveTheBitsOfMasksThatShowTheSame) {
  AttentionCase which = make_case(Storage::fp16, 1, 270, 333, 2, 1, 128, true, 420);
  const AttentionOutput causal = pipelines_.run(which);
  which.inputs.causal = false;
  set_mask(which, 1, 1, [](int, int, int row, int key) { return key <= row + 63; });
  expect_same_bits(pipelines_.run(which), causal);
  set_mask(which, 1, 1, [](int, int, int row, int key) { return key <= row + 63 && key / 90 == (row + 63) / 90; });
  const AttentionOutput of_mask = pipelines_.run(which);
  which.inputs.shown.clear();
  which.inputs.causal = true;
  which.inputs.local_chunk = 90;
  expect_same_bits(of_mask, pipelines_.run(which));
  // And all open ones those of none.
  which.inputs.local_chunk = 0;
  which.inputs.causal = false;
  const AttentionOutput whole = pipelines_.run(which);
  set_mask(which, 1, 1, [](int, int, int, int) { return true; });
  expect_same_bits(pipelines_.run(which), whole);
}

// A lane reads 16 keys of a row, of the last ones as many as there are.
TEST_P(BoolMasks, OfEveryRemainderOfKeys) {
  std::uint64_t seed = 470;
  int index = 0;
  for (const int keys : {1, 2, 15, 16, 17, 31, 33, 48, 63, 64, 65, 79, 80, 81, 127, 130}) {
    if (!in_part(index++, 2)) continue;
    SCOPED_TRACE(keys);
    AttentionCase which = make_case(Storage::bf16, 1, 67, keys, 1, 1, 64, false, seed);
    set_mask(which, 1, 1, [](int, int, int row, int key) { return ((row * 7) + (key * 13) + (row * key)) % 3 != 0; });
    pipelines_.check(which);
    const std::uint64_t hidden_row = seed % 67;
    set_mask(which, 1, 1,
             [&](int, int, int row, int key) { return row != static_cast<int>(hidden_row) || key + 1 != keys; });
    pipelines_.check(which);
    ++seed;
  }
}

TEST_P(BoolMasks, BesideADiagonalAndAWindow) {
  AttentionCase which = make_case(Storage::bf16, 1, 150, 300, 2, 1, 64, true, 430);
  set_mask(which, 1, 1, random_blocks(which, 5));
  pipelines_.check(which);
  which.inputs.window = true;
  which.inputs.window_left = 100;
  which.inputs.window_right = 0;
  pipelines_.check(which);
}

TEST_P(BoolMasks, OfPackedSequencesAndPages) {
  AttentionCase which = make_case(Storage::bf16, 4, 1, 330, 2, 1, 128, false, 450);
  AttentionInputs& in = which.inputs;
  in.key_lengths = {330, 70, 200, 5};
  in.query_starts = {0, 260, 261, 270, 270};
  in.query_length = 260;
  in.q = normal_values(Storage::bf16, std::size_t{270} * 2 * 128, 1.0, 451);
  set_mask(which, 1, 2, random_blocks(which, 6));
  const AttentionOutput dense = pipelines_.check(which);
  for (const int size : {16, 64}) {
    which.pages = Pages{.size = size};
    expect_same_bits(pipelines_.run(which), dense);
  }
}

INSTANTIATE_TEST_SUITE_P(All, BoolMasks, ::testing::Values("gfx942", "gfx950"),
                         [](const ::testing::TestParamInfo<std::string>& info) { return info.param; });

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
