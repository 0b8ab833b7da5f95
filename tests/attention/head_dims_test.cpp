// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Head dims beyond the square 64 and 128: 192 for q and k with 128 for v, and 256, which gfx942 has without modifiers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <format>
#include <string>
#include <tuple>

#include "attention/modified.h"
#include "attention/schedules.h"
#include "support/attention_run.h"
#include "support/part.h"

namespace wavejit::tests {
namespace {

struct Lengths {
  int query;
  int key;
};

using Combination = std::tuple<std::string, Storage, bool>;

class LargeHeadDims : public ::testing::TestWithParam<Combination> {
 protected:
  static void check(const std::string& target, Storage storage, bool causal, int head_dim, int head_dim_v) {
    Engine engine(target);
    for (const Lengths& length : {Lengths{33, 65}, Lengths{130, 63}, Lengths{1, 129}, Lengths{257, 193}}) {
      SCOPED_TRACE(std::format("q{} k{}", length.query, length.key));
      check_under_all_schedules(
          engine, make_case(storage, 1, length.query, length.key, 2, 1, head_dim, causal, 7, 1.0, head_dim_v));
    }
  }
};

TEST_P(LargeHeadDims, MatchFloat64For192And128) {
  const auto [target, storage, causal] = GetParam();
  check(target, storage, causal, 192, 128);
}

TEST_P(LargeHeadDims, MatchFloat64For256) {
  const auto [target, storage, causal] = GetParam();
  check(target, storage, causal, 256, 256);
}

TEST(LargestHeadDim, IsRefusedWithTheReasonWhereRegistersEnd) {
  Engine engine("gfx942");
  AttentionCase which = make_case(Storage::bf16, 1, 2, 2, 1, 1, 256, true, 7);
  which.inputs.softcap = 2;
  const AttentionOutput output = run_attention(engine.get(), which);
  EXPECT_EQ(output.status, WAVEJIT_UNSUPPORTED);
  EXPECT_THAT(
      output.detail,
      ::testing::HasSubstr("head dim 256 with softcap has no kernel on gfx942; leave softcap out, or use head dim "
                           "192/128, 128 or 64; reason: head dim 256 needs LDS DMA of 16 bytes"));
}

TEST_P(LargeHeadDims, MatchFloat64WithEveryModifier) {
  const auto [target, storage, causal] = GetParam();
  Engine engine(target);
  for (const auto& [head_dim, head_dim_v] : {std::pair{192, 128}, std::pair{256, 256}}) {
    if (head_dim == 256 && target != "gfx950") continue;
    SCOPED_TRACE(std::format("d{}/{}", head_dim, head_dim_v));
    AttentionCase which = make_case(storage, 1, 130, 193, 2, 1, head_dim, causal, 8, 1.0, head_dim_v);
    which.inputs.softcap = 2;
    add_bias(which, 1, 2, 1, 9);
    add_alibi(which, 1);
    add_sink(which, 0.5);
    which.inputs.window = true;
    which.inputs.window_left = 70;
    which.inputs.window_right = 20;
    check_under_all_schedules(engine, which);
  }
}

std::string name_of(const ::testing::TestParamInfo<Combination>& info) {
  const auto [target, storage, causal] = info.param;
  return std::format("{}_{}_{}", target, storage == Storage::fp16 ? "fp16" : "bf16", causal ? "causal" : "full");
}

INSTANTIATE_TEST_SUITE_P(All, LargeHeadDims,
                         ::testing::ValuesIn(half_of_combinations<std::string, Storage, bool>(
                             {"gfx942", "gfx950"}, {Storage::fp16, Storage::bf16}, {false, true})),
                         name_of);

}  // namespace
}  // namespace wavejit::tests
