// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A small cut through the attention matrix, quick enough for the sanitizers.
#include <gtest/gtest.h>

#include <format>
#include <string>
#include <tuple>

#include "attention/schedules.h"
#include "support/attention_run.h"

namespace wavejit::tests {
namespace {

struct Lengths {
  int query;
  int key;
};

using Combination = std::tuple<std::string, Storage, int, bool>;

class AttentionSmall : public ::testing::TestWithParam<Combination> {};

// A small cut through the matrix, for the sanitizers.
TEST_P(AttentionSmall, MatchesFloat64) {
  const auto [target, storage, head_dim, causal] = GetParam();
  Engine engine(target);
  for (const Lengths& length : {Lengths{33, 65}, Lengths{65, 33}, Lengths{1, 0}}) {
    SCOPED_TRACE(std::format("q{} k{}", length.query, length.key));
    check_under_all_schedules(engine, make_case(storage, 1, length.query, length.key, 2, 1, head_dim, causal, 5));
  }
}

std::string name_of(const ::testing::TestParamInfo<Combination>& info) {
  const auto [target, storage, head_dim, causal] = info.param;
  return std::format("{}_{}_d{}_{}", target, storage == Storage::fp16 ? "fp16" : "bf16", head_dim,
                     causal ? "causal" : "full");
}

INSTANTIATE_TEST_SUITE_P(All, AttentionSmall,
                         ::testing::Combine(::testing::Values(std::string("gfx942"), std::string("gfx950")),
                                            ::testing::Values(Storage::fp16, Storage::bf16), ::testing::Values(64, 128),
                                            ::testing::Bool()),
                         name_of);

}  // namespace
}  // namespace wavejit::tests
