// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A bias by tile: bit by bit beside the same bias without the flag, and against float64, on every pipeline under every
// schedule.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "attention/kinds_of_blocks.h"
#include "attention/modified.h"
#include "support/part.h"

namespace wavejit::tests {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr float hidden = -std::numeric_limits<float>::infinity();

// A quarter of the blocks of rows and tiles of keys is hidden, a quarter 0 (of either sign), a quarter has both, the
// rest any numbers beside them; the last rows see nothing.
void add_mask_of_numbers(AttentionCase& which, int batches, int heads, std::uint64_t seed) {
  add_bias(which, batches, heads, 1.0, seed);
  AttentionInputs& in = which.inputs;
  const int rows = in.query_rows();
  KindsOfBlocks kinds(4);
  std::size_t at = 0;
  for (int plane = 0; plane < batches * heads; ++plane)
    for (int row = 0; row < rows; ++row)
      for (int key = 0; key < in.key_length; ++key) {
        const std::uint64_t kind = kinds.of(seed + (1000003ULL * plane) + (131ULL * (row / 64)) + (key / 64));
        const bool hides = ((row * 31) + (key * 17) + (row * key)) % 5 < 2;
        float& number = in.bias[at++];
        if (row >= rows - 2 || kind == 0 || (kind > 1 && hides)) {
          number = hidden;
        } else if (kind < 3) {
          number = (row + key) % 3 == 0 ? -0.0F : 0.0F;
        }
      }
}

class BiasByTile : public ::testing::TestWithParam<std::string> {
 protected:
  // The same bits with the flag and without.
  AttentionOutput expect_same(AttentionCase which) const {
    which.bias_by_tile = false;
    const AttentionOutput wanted = pipelines_.run(which);
    EXPECT_THAT(wanted.kernel_spec, Not(HasSubstr("block_lists")));
    which.bias_by_tile = true;
    AttentionOutput output = pipelines_.run(which);
    EXPECT_THAT(output.kernel_spec, HasSubstr(" bias_by_tile "));
    EXPECT_TRUE(output.o == wanted.o) << output.kernel_spec << " beside " << wanted.kernel_spec;
    EXPECT_TRUE(bits_of(output.lse) == bits_of(wanted.lse)) << output.kernel_spec << " beside " << wanted.kernel_spec;
    return output;
  }
  AttentionOutput check(AttentionCase which) const {
    which.bias_by_tile = true;
    return pipelines_.check(which);
  }
  Pipelines pipelines_{GetParam()};
};

TEST_P(BiasByTile, MatchesFloat64AndHasTheBitsOfTheBias) {
  AttentionCase which = make_case(Storage::bf16, 2, 290, 333, 2, 1, 128, false, 700);
  add_mask_of_numbers(which, 2, 2, 1);
  which.own_workspace = true;
  const AttentionOutput output = check(which);
  // Rows that see no key.
  EXPECT_EQ(output.lse[288], hidden);
  EXPECT_TRUE(std::all_of(output.o.begin() + (std::size_t{288} * 2 * 128),
                          output.o.begin() + (std::size_t{290} * 2 * 128),
                          [](std::uint16_t bits) { return bits == 0; }));
  expect_same(which);
  which = make_case(Storage::fp16, 2, 65, 130, 4, 2, 64, false, 701);
  add_mask_of_numbers(which, 1, 4, 2);
  check(which);
  expect_same(which);
}

TEST_P(BiasByTile, OfFp32) {
  for (const Storage storage : {Storage::bf16, Storage::fp16}) {
    AttentionCase which = make_case(storage, 1, 140, 333, 2, 1, 64, false, 710);
    add_mask_of_numbers(which, 1, 1, 3);
    for (float& number : which.inputs.bias) number *= 1 + 0x1p-14F;
    which.bias_fp32 = true;
    check(which);
    expect_same(which);
  }
}

TEST_P(BiasByTile, BesideADiagonalAWindowAndOtherModifiers) {
  AttentionCase which = make_case(Storage::bf16, 1, 150, 300, 2, 1, 64, true, 720);
  add_mask_of_numbers(which, 1, 1, 4);
  check(which);
  expect_same(which);
  which.inputs.softcap = 9;
  add_alibi(which, 1);
  add_sink(which, 0.5);
  check(which);
  expect_same(which);
  which.inputs.window = true;
  which.inputs.window_left = 100;
  which.inputs.window_right = 0;
  check(which);
  expect_same(which);
}

TEST_P(BiasByTile, OfPackedSequences) {
  AttentionCase which = make_case(Storage::bf16, 4, 1, 330, 2, 1, 128, false, 730);
  AttentionInputs& in = which.inputs;
  in.key_lengths = {330, 70, 200, 5};
  in.query_starts = {0, 260, 261, 270, 270};
  in.query_length = 260;
  in.q = normal_values(Storage::bf16, std::size_t{270} * 2 * 128, 1.0, 731);
  add_mask_of_numbers(which, 1, 2, 5);
  check(which);
  expect_same(which);
}

// A lane reads 8 keys of a row, or 4: of the last ones as many as there are. One number of a tile that is not 0, or not
// −∞, in turn anywhere.
TEST_P(BiasByTile, OfEveryRemainderOfKeys) {
  std::uint64_t seed = 770;
  int index = 0;
  for (const int keys : {1, 2, 7, 8, 9, 15, 33, 63, 64, 65, 71, 127, 130}) {
    if (!in_part(index++, 2)) continue;
    SCOPED_TRACE(keys);
    for (const bool wide : {false, true}) {
      AttentionCase which =
          make_case(seed % 2 == 0 ? Storage::bf16 : Storage::fp16, 1, 67, keys, 1, 1, 64, false, seed);
      which.bias_fp32 = wide;
      AttentionInputs& in = which.inputs;
      in.bias_batches = in.bias_heads = 1;
      const std::size_t all = std::size_t{67} * static_cast<std::size_t>(keys);
      const auto place = [&](std::uint64_t row) { return (row % 67 * keys) + static_cast<std::size_t>(keys - 1); };
      in.bias.assign(all, 0.0F);
      expect_same(which);
      in.bias[place(seed)] = -3.0F;
      expect_same(which);
      in.bias.assign(all, hidden);
      in.bias[place(seed * 7)] = 2.0F;
      expect_same(which);
      ++seed;
    }
  }
}

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
  add_mask_of_numbers(which, 1, 1, 6);
  for (float& number : which.inputs.bias)
    if (std::isinf(number)) number = -0x1.FEp127F;
  expect_same(which);
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
