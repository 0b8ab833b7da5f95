// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The attention kernel against float64, over the whole matrix that is promised:
//   {gfx942, gfx950} × {fp16, bf16} × head dim {64, 128} × {full, causal} × lengths × heads × layouts,
// each case under three wave schedules with other noise in registers and LDS; the bits must be the same under all
// three. A part of the lengths each in ./dev test, all of them in ./dev soak.
#include <gtest/gtest.h>

#include <format>
#include <string>
#include <tuple>

#include "attention/lengths.h"
#include "attention/schedules.h"
#include "support/attention_run.h"
#include "support/part.h"

namespace wavejit::tests {
namespace {

using Combination = std::tuple<std::string, Storage, int, bool>;

class AttentionMatrix : public ::testing::TestWithParam<Combination> {};

TEST_P(AttentionMatrix, MatchesFloat64) {
  const auto [target, storage, head_dim, causal] = GetParam();
  Engine engine(target);
  for (int index = 0; index < static_cast<int>(lengths.size()); ++index) {
    if (!in_part(index, 3)) continue;
    const Lengths length = lengths[index];
    const Heads head = heads[index % heads.size()];
    const int batch = index % 3 == 1 ? 2 : 1;
    AttentionCase which =
        make_case(storage, batch, length.query, length.key, head.query, head.kv, head_dim, causal, 1000 + index);
    which.layout = layouts[index % layouts.size()];
    which.lse = index % 4 != 3;
    SCOPED_TRACE(std::format("b{} q{} k{} h{}/{} layout {} lse {}", batch, length.query, length.key, head.query,
                             head.kv, static_cast<int>(which.layout), which.lse));
    check_under_all_schedules(engine, which);
    if (HasFatalFailure()) return;
  }
}

// The longest square case apart: one head pair is enough, and it keeps the matrix above quick.
TEST_P(AttentionMatrix, MatchesFloat64At1024) {
  const auto [target, storage, head_dim, causal] = GetParam();
  Engine engine(target);
  check_under_all_schedules(engine, make_case(storage, 1, 1024, 1024, 2, 1, head_dim, causal, 77));
}

std::string name_of(const ::testing::TestParamInfo<Combination>& info) {
  const auto [target, storage, head_dim, causal] = info.param;
  return std::format("{}_{}_d{}_{}", target, storage == Storage::fp16 ? "fp16" : "bf16", head_dim,
                     causal ? "causal" : "full");
}

INSTANTIATE_TEST_SUITE_P(All, AttentionMatrix,
                         ::testing::ValuesIn(half_of_combinations<std::string, Storage, int, bool>(
                             {"gfx942", "gfx950"}, {Storage::fp16, Storage::bf16}, {64, 128}, {false, true})),
                         name_of);

}  // namespace
}  // namespace wavejit::tests
