// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// attention_merge on the simulated GPU: which bits are the same, infinities and NaN. Against float64 it is rows of
// value_rows.txt.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "attention_merge/merge_run.h"

namespace wavejit::tests {
namespace {

using ::testing::HasSubstr;

constexpr float nothing = -std::numeric_limits<float>::infinity();

class AttentionMerge : public ::testing::TestWithParam<const char*> {
 protected:
  MergeOutput run(const MergeCase& which) {
    MergeOutput output = run_merge(engine_.get(), which);
    EXPECT_EQ(output.status, WAVEJIT_OK) << output.detail << output.reports;
    EXPECT_EQ(output.reports, "");
    EXPECT_TRUE(output.rest_intact) << "something outside of the result was written";
    return output;
  }
  MergeOutput matches(const MergeCase& which) {
    MergeOutput output = run(which);
    EXPECT_EQ(difference_from_exact(which, output), "");
    return output;
  }
  static void expect_same(const MergeOutput& found, const MergeOutput& wanted) {
    EXPECT_EQ(found.o, wanted.o);
    ASSERT_EQ(found.lse.size(), wanted.lse.size());
    for (std::size_t row = 0; row < found.lse.size(); ++row)
      EXPECT_EQ(std::bit_cast<std::uint32_t>(found.lse[row]), std::bit_cast<std::uint32_t>(wanted.lse[row])) << row;
  }

  Engine engine_{GetParam()};
};

// A row's bits are a function of its own parts: not of the batch, its place in it, the strides, the result's place.
TEST_P(AttentionMerge, ARowIsItsOwn) {
  const MergeCase all = filled({.batch = 3, .tokens = 4, .heads = 6, .dims = 80}, 3, 30, true);
  const MergeOutput wanted = run(all);
  for (const int in_place : {0, 2}) {
    MergeCase which = all;
    which.in_place = in_place;
    expect_same(run(which), wanted);
  }
  MergeCase other = all;
  other.heads_outside = other.lse_by_token = true;
  expect_same(run(other), wanted);
  const auto dims = static_cast<std::size_t>(all.dims);
  for (const std::size_t row : {0U, 7U, 25U, 71U}) {
    MergeCase alone = {.dims = all.dims};
    for (const MergePart& part : all.parts)
      alone.parts.push_back({.o = {part.o.begin() + static_cast<std::ptrdiff_t>(row * dims),
                                   part.o.begin() + static_cast<std::ptrdiff_t>((row + 1) * dims)},
                             .lse = {part.lse[row]}});
    const MergeOutput found = run(alone);
    EXPECT_EQ(found.o, std::vector<std::uint32_t>(wanted.o.begin() + static_cast<std::ptrdiff_t>(row * dims),
                                                  wanted.o.begin() + static_cast<std::ptrdiff_t>((row + 1) * dims)));
    EXPECT_EQ(std::bit_cast<std::uint32_t>(found.lse[0]), std::bit_cast<std::uint32_t>(wanted.lse[row]));
  }
}

TEST_P(AttentionMerge, APartWithoutKeysIsTheIdentity) {
  const MergeCase two = filled({.tokens = 5, .heads = 4, .dims = 64}, 2, 40);
  const MergeOutput wanted = matches(two);
  const MergePart none = {.o = std::vector<float>(two.parts[0].o.size(), std::numeric_limits<float>::quiet_NaN()),
                          .lse = std::vector<float>(two.parts[0].lse.size(), nothing)};
  for (std::ptrdiff_t at = 0; at <= 2; ++at) {
    MergeCase which = two;
    which.parts.insert(which.parts.begin() + at, none);
    which.parts.insert(which.parts.begin() + at, none);
    expect_same(run(which), wanted);
  }
  // One part among such: its own O and LSE, to the bit.
  MergeCase one = {.tokens = 5, .heads = 4, .dims = 64};
  one.parts = {none, two.parts[1], none};
  const MergeOutput same = run(one);
  for (std::size_t at = 0; at < same.o.size(); ++at) EXPECT_EQ(same.value(at, WAVEJIT_BF16), two.parts[1].o[at]) << at;
  for (std::size_t row = 0; row < same.lse.size(); ++row)
    EXPECT_EQ(std::bit_cast<std::uint32_t>(same.lse[row]), std::bit_cast<std::uint32_t>(two.parts[1].lse[row])) << row;
  // Nothing but such: 0, and −∞.
  one.parts = {none, none};
  const MergeOutput empty = run(one);
  for (const std::uint32_t bits : empty.o) EXPECT_EQ(bits, 0U);
  for (const float lse : empty.lse) EXPECT_EQ(lse, nothing);
}

TEST_P(AttentionMerge, InfinitiesAndNan) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  // LSE of the two parts of each head; O is 1 and 3.
  const std::vector<std::pair<float, float>> pairs = {{infinity, 2}, {2, infinity},  {infinity, infinity}, {nan, 2},
                                                      {2, nan},      {nan, nothing}, {1e30F, -1e30F},      {0, 0}};
  MergeCase which = {
      .type = WAVEJIT_FP32, .out = WAVEJIT_FP32, .heads = static_cast<std::int64_t>(pairs.size()), .dims = 8};
  which.parts.resize(2);
  for (const auto& [first, second] : pairs) {
    which.parts[0].lse.push_back(first);
    which.parts[1].lse.push_back(second);
    which.parts[0].o.insert(which.parts[0].o.end(), 8, 1.0F);
    which.parts[1].o.insert(which.parts[1].o.end(), 8, 3.0F);
  }
  const MergeOutput output = run(which);
  const std::vector<float> wanted = {1, 3, 2, nan, nan, nan, 1, 2};
  const std::vector<float> lse = {infinity, infinity, infinity, nan, nan, nan, 1e30F, std::log(2.0F)};
  for (std::size_t head = 0; head < pairs.size(); ++head) {
    SCOPED_TRACE(head);
    const float found = output.value(head * 8, WAVEJIT_FP32);
    EXPECT_TRUE(std::isnan(wanted[head]) ? std::isnan(found) : found == wanted[head]) << found;
    EXPECT_TRUE(std::isnan(lse[head]) ? std::isnan(output.lse[head]) : output.lse[head] == lse[head])
        << output.lse[head];
  }
}

// A head has lanes of one wave.
TEST(AttentionMergeRefusals, OfHeadsBeyondAWave) {
  const Engine engine("gfx1201");
  const MergeOutput refused = run_merge(engine.get(), filled({.heads = 2, .dims = 512}, 2, 1));
  EXPECT_EQ(refused.status, WAVEJIT_UNSUPPORTED);
  EXPECT_THAT(refused.detail, HasSubstr("of 512 dims has no kernel where waves have 32 lanes"));
}

TEST_P(AttentionMerge, SixteenBitsAreTheRoundedOnes) {
  MergeCase which = filled({.type = WAVEJIT_FP32, .out = WAVEJIT_FP32, .tokens = 9, .heads = 3, .dims = 96}, 4, 50);
  const MergeOutput wide = run(which);
  for (const auto& [type, storage] : {std::pair{WAVEJIT_BF16, Storage::bf16}, {WAVEJIT_FP16, Storage::fp16}}) {
    which.out = type;
    const MergeOutput narrow = run(which);
    EXPECT_THAT(narrow.kernel_spec, HasSubstr(type == WAVEJIT_BF16 ? "fp32 out=bf16" : "fp32 out=fp16"));
    for (std::size_t at = 0; at < wide.o.size(); ++at)
      ASSERT_EQ(narrow.o[at], to_storage(storage, static_cast<double>(wide.value(at, WAVEJIT_FP32)))) << at;
  }
}

INSTANTIATE_TEST_SUITE_P(All, AttentionMerge, ::testing::Values("gfx942", "gfx950", "gfx1201"));

}  // namespace
}  // namespace wavejit::tests
