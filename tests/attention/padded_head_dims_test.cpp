// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Head dims that tiles pad (templates/attention_forward/kernel/head_dims.h): the bits of rows that a caller has filled
// with zeros, and nothing of what stands behind a row; what is refused of the largest. Against float64 they are rows of
// value_rows.txt.
#include <gtest/gtest.h>

#include <format>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

#include "support/attention_run.h"
#include "support/part.h"

namespace wavejit::tests {
namespace {

using Combination = std::tuple<std::string, Storage>;

class PaddedHeadDims : public ::testing::TestWithParam<Combination> {};

std::vector<float> filled(const std::vector<float>& rows, int dims, int wanted) {
  std::vector<float> all;
  for (std::size_t at = 0; at < rows.size(); at += static_cast<std::size_t>(dims)) {
    all.insert(all.end(), rows.begin() + static_cast<std::ptrdiff_t>(at),
               rows.begin() + static_cast<std::ptrdiff_t>(at) + dims);
    all.insert(all.end(), static_cast<std::size_t>(wanted - dims), 0.0F);
  }
  return all;
}

TEST_P(PaddedHeadDims, HaveTheBitsOfRowsFilledWithZeros) {
  const auto [target, storage] = GetParam();
  Engine engine(target);
  for (const auto& [dims, whole] : {std::pair{40, 64}, {72, 128}, {96, 128}, {120, 128}}) {
    for (const int queries : {3, 257}) {
      SCOPED_TRACE(std::format("d{} in d{}, q{}", dims, whole, queries));
      const AttentionCase padded = make_case(storage, 1, queries, 1090, 4, 2, dims, true, 11);
      AttentionCase zeros = padded;
      zeros.inputs.head_dim = zeros.inputs.head_dim_v = whole;
      zeros.inputs.q = filled(padded.inputs.q, dims, whole);
      zeros.inputs.k = filled(padded.inputs.k, dims, whole);
      zeros.inputs.v = filled(padded.inputs.v, dims, whole);
      const AttentionOutput one = run_attention(engine.get(), padded);
      const AttentionOutput other = run_attention(engine.get(), zeros);
      ASSERT_EQ(one.status, WAVEJIT_OK) << one.detail;
      ASSERT_EQ(other.status, WAVEJIT_OK) << other.detail;
      EXPECT_EQ(one.reports, "");
      EXPECT_EQ(one.lse, other.lse);
      std::size_t differ = 0;
      for (std::size_t row = 0; row < one.o.size() / static_cast<std::size_t>(dims); ++row)
        for (int dim = 0; dim < dims; ++dim)
          differ += one.o[(row * static_cast<std::size_t>(dims)) + static_cast<std::size_t>(dim)] !=
                            other.o[(row * static_cast<std::size_t>(whole)) + static_cast<std::size_t>(dim)]
                        ? 1
                        : 0;
      EXPECT_EQ(differ, 0);
    }
  }
}

// After a row of one head comes the next head's row. NaN there must not reach this head.
TEST_P(PaddedHeadDims, NothingOfTheNextHeadShows) {
  const auto [target, storage] = GetParam();
  Engine engine(target);
  constexpr int heads = 2;
  for (const int dims : {40, 72, 104}) {
    for (const int queries : {3, 257}) {
      SCOPED_TRACE(std::format("d{} q{}", dims, queries));
      const AttentionCase clean = make_case(storage, 1, queries, 200, heads, heads, dims, false, 13);
      AttentionCase dirty = clean;
      const auto of_second_head = [&](std::vector<float>& rows) {
        for (std::size_t at = 0; at < rows.size(); ++at)
          if (at / static_cast<std::size_t>(dims) % heads == 1) rows[at] = std::numeric_limits<float>::quiet_NaN();
      };
      of_second_head(dirty.inputs.q);
      of_second_head(dirty.inputs.k);
      of_second_head(dirty.inputs.v);
      const AttentionOutput one = run_attention(engine.get(), clean);
      const AttentionOutput other = run_attention(engine.get(), dirty);
      ASSERT_EQ(one.status, WAVEJIT_OK) << one.detail;
      ASSERT_EQ(other.status, WAVEJIT_OK) << other.detail;
      std::size_t differ = 0;
      for (std::size_t at = 0; at < one.o.size(); ++at)
        if (at / static_cast<std::size_t>(dims) % heads == 0 && one.o[at] != other.o[at]) ++differ;
      EXPECT_EQ(differ, 0);
    }
  }
}

TEST(LargestHeadDim, IsRefusedWithTheReasonWhereRegistersEnd) {
  Engine engine("gfx1201");
  const AttentionCase which = make_case(Storage::bf16, 1, 2, 2, 1, 1, 256, true, 7);
  const AttentionOutput output = run_attention(engine.get(), which);
  EXPECT_EQ(output.status, WAVEJIT_UNSUPPORTED);
  EXPECT_TRUE(output.detail.contains("head dim 256 has no kernel on gfx1201; use head dim 192/128, 128 or 64"))
      << output.detail;
}

std::string name_of(const ::testing::TestParamInfo<Combination>& info) {
  const auto [target, storage] = info.param;
  return std::format("{}_{}", target, storage == Storage::fp16 ? "fp16" : "bf16");
}

INSTANTIATE_TEST_SUITE_P(All, PaddedHeadDims,
                         ::testing::ValuesIn(half_of_combinations<std::string, Storage>(
                             {"gfx942", "gfx950"}, {Storage::fp16, Storage::bf16})),
                         name_of);

}  // namespace
}  // namespace wavejit::tests
