// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Lists of key blocks: that nothing outside them shows, and what is refused. Against float64, and with the bits of no
// list, they are rows of value_rows.txt.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <format>
#include <functional>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

#include "attention/modified.h"

namespace wavejit::tests {
namespace {

using ::testing::HasSubstr;

struct Sizes {
  int rows, keys;
};
using Combination = std::tuple<std::string, Storage, int, Sizes>;

class AttentionLists : public ::testing::TestWithParam<Combination> {
 protected:
  AttentionCase make(int batch, int queries, int keys, int heads, int kv_heads, std::uint64_t seed) const {
    return make_case(std::get<1>(GetParam()), batch, queries, keys, heads, kv_heads, std::get<2>(GetParam()), false,
                     seed);
  }
  BlockLists full(const AttentionCase& which) const {
    const auto [rows, keys] = std::get<3>(GetParam());
    return full_lists(rows, keys, which.inputs.query_length, which.inputs.key_length);
  }
  Pipelines pipelines_{std::get<0>(GetParam())};
};

// Keys of blocks that no list names are not read: NaN there reaches nobody. Rows of an empty list see nothing.
TEST_P(AttentionLists, BlocksThatNobodyNamesMayBeNan) {
  AttentionCase which = make(1, 300, 700, 2, 1, 5);
  BlockLists lists = full(which);
  const auto [rows, keys] = std::get<3>(GetParam());
  for (auto& list : lists.masked) std::erase_if(list, [](std::int32_t block) { return block % 3 == 1; });
  lists.masked.back().clear();
  which.inputs.lists = lists;
  const AttentionOutput finite = pipelines_.check(which);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const int dims = which.inputs.head_dim;
  for (int key = 0; key < 700; ++key) {
    if (key / keys % 3 != 1) continue;
    std::fill_n(which.inputs.k.begin() + std::ptrdiff_t(key) * dims, dims, nan);
    std::fill_n(which.inputs.v.begin() + std::ptrdiff_t(key) * dims, dims, nan);
  }
  const AttentionOutput output = pipelines_.run(which);
  EXPECT_EQ(output.o, finite.o);
  EXPECT_EQ(bits_of(output.lse), bits_of(finite.lse));
  EXPECT_EQ(output.lse.back(), -std::numeric_limits<float>::infinity());
  EXPECT_EQ(output.o.back(), 0);
}

// FlashMLA's note on top-k: entries beyond the length that point at NaN make NaN, although they are ignored. AITER's
// VSA wants counts below the room, since it reads one entry ahead, and a block in every list. Here the room behind a
// count names a block of NaN, the longest list fills its room, and one is empty.
TEST_P(AttentionLists, EntriesBehindACountMayNameNan) {
  AttentionCase which = make(1, 200, 600, 2, 1, 9);
  BlockLists lists = full(which);
  const int keys = std::get<3>(GetParam()).keys;
  for (auto& list : lists.masked) std::erase(list, 0);
  lists.masked.front().clear();
  which.inputs.lists = lists;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const AttentionOutput finite = pipelines_.check(which);
  std::fill_n(which.inputs.k.begin(), std::ptrdiff_t(keys) * which.inputs.head_dim, nan);
  std::fill_n(which.inputs.v.begin(), std::ptrdiff_t(keys) * which.inputs.head_dim, nan);
  for (const bool noise : {false, true}) {
    which.list_form.noise = noise;
    const AttentionOutput output = pipelines_.run(which);
    EXPECT_EQ(output.o, finite.o);
    EXPECT_EQ(bits_of(output.lse), bits_of(finite.lse));
  }
}

std::string name_of(const ::testing::TestParamInfo<Combination>& info) {
  const auto [target, storage, head_dim, sizes] = info.param;
  return std::format("{}_{}_d{}_{}x{}", target, storage == Storage::fp16 ? "fp16" : "bf16", head_dim, sizes.rows,
                     sizes.keys);
}

INSTANTIATE_TEST_SUITE_P(All, AttentionLists,
                         ::testing::Values(Combination{"gfx942", Storage::fp16, 64, Sizes{64, 128}},
                                           Combination{"gfx942", Storage::bf16, 128, Sizes{128, 64}},
                                           Combination{"gfx950", Storage::bf16, 64, Sizes{128, 128}},
                                           Combination{"gfx950", Storage::fp16, 128, Sizes{64, 64}}),
                         name_of);

// ---- What bad input gets

class ListRefusals : public ::testing::Test {
 protected:
  ListRefusals() { which_.inputs.lists = random_lists(64, 64, 1, 2, 128, 256, 2, 0, 0); }
  void expect(const std::string& detail) {
    const AttentionOutput output = run_attention(engine_.get(), which_);
    EXPECT_EQ(output.status, WAVEJIT_INVALID_ARGUMENT);
    EXPECT_THAT(output.detail, HasSubstr(detail));
  }
  // The refusal of a call with this flag, which looks at what the device has.
  void expect_of_device(const std::string& detail) {
    which_.flags = WAVEJIT_CHECK_LENGTHS;
    expect(detail);
  }
  AttentionCase which_ = make_case(Storage::fp16, 1, 128, 256, 4, 2, 64, false, 1);
  Engine engine_{"gfx950"};
};

TEST_F(ListRefusals, NameTheField) {
  BlockLists& lists = *which_.inputs.lists;
  const BlockLists good = lists;
  lists.rows = 32;
  expect("list_rows = 32; accepted: 64, 128");
  lists = good;
  lists.keys = 256;
  expect("list_keys = 256; accepted: 64, 128");
  lists = good;
  lists.heads = 3;
  expect("list_heads = 3; accepted: 1, 2 (kv heads), 4 (query heads)");
  lists = good;
  lists.batches = 2;
  expect("list_batches = 2; accepted: 1, 1 (sequences)");
  lists = good;
  lists.row_blocks = 1;
  expect("list_row_blocks = 1; accepted: 2 and more, for 128 rows in blocks of 64");
}

TEST_F(ListRefusals, OfTheDeviceWhereTheFlagAsks) {
  BlockLists& lists = *which_.inputs.lists;
  const BlockLists good = lists;
  which_.flags = WAVEJIT_CHECK_LENGTHS;
  EXPECT_EQ(run_attention(engine_.get(), which_).status, WAVEJIT_OK);
  lists.masked[1] = {0, 2, 1, 3};
  expect_of_device("list_indices[6] = 1; accepted: −1 for none, or 3 to 3, ascending in a list");
  lists = good;
  lists.whole[2] = {4};
  expect_of_device("full_indices[2] = 4; accepted: −1 for none, or 0 to 3");
}

}  // namespace
}  // namespace wavejit::tests
