// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Few query rows: the heads of a kv head as rows of one tile. Against float64, and bit by bit against the same call
// with a copy of K and V for every query head, whose kernel has one head a workgroup.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <format>
#include <span>
#include <string>
#include <tuple>

#include "attention/modified.h"
#include "support/part.h"

namespace wavejit::tests {
namespace {

struct Dims {
  int qk;
  int v;
};
using Combination = std::tuple<std::string, Storage, Dims>;

// Each query head with keys and values of its own.
AttentionCase with_copies(AttentionCase which) {
  AttentionInputs& in = which.inputs;
  const int group = in.query_heads / in.kv_heads;
  const auto copied = [&](const std::vector<float>& from, int dim) {
    std::vector<float> all;
    for (std::size_t row = 0; row < from.size(); row += static_cast<std::size_t>(dim))
      for (int head = 0; head < group; ++head)
        all.insert(all.end(), from.begin() + static_cast<std::ptrdiff_t>(row),
                   from.begin() + static_cast<std::ptrdiff_t>(row) + dim);
    return all;
  };
  in.k = copied(in.k, in.head_dim);
  in.v = copied(in.v, in.value_dim());
  in.kv_heads = in.query_heads;
  return which;
}

class PackedHeads : public ::testing::TestWithParam<Combination> {
 protected:
  Storage storage() const { return std::get<1>(GetParam()); }
  Dims dims() const { return std::get<2>(GetParam()); }
  AttentionCase make(int batch, int queries, int keys, int kv_heads, int group, bool causal, std::uint64_t seed) const {
    return make_case(storage(), batch, queries, keys, kv_heads * group, kv_heads, dims().qk, causal, seed, 1.0,
                     dims().v);
  }

  AttentionOutput run(const AttentionCase& which) const {
    AttentionOutput output = run_attention(engine_.get(), which);
    EXPECT_EQ(output.status, WAVEJIT_OK) << output.detail << output.reports;
    EXPECT_EQ(output.reports, "");
    EXPECT_TRUE(output.fence_intact) << "something outside O, LSE or the workspace was written";
    return output;
  }

  // Packed, whole and in `splits` runs, against float64 and against one head a workgroup.
  void check(const AttentionCase& which, std::initializer_list<int> splits) const {
    AttentionCase copies = with_copies(which);
    copies.splits = 1;
    set_schedule(WAVEJIT_SIMGPU_IN_ORDER, 1);
    const AttentionOutput wanted = run(copies);
    ASSERT_FALSE(HasFailure());
    ASSERT_THAT(wanted.kernel_spec, ::testing::Not(::testing::HasSubstr(" heads=packed")));
    EXPECT_EQ(compare_rows(which, attention_reference(which.inputs), wanted).wrong(), "");
    int index = 0;
    for (const int runs : splits) {
      SCOPED_TRACE(std::format("splits {}", runs));
      AttentionCase packed = which;
      packed.splits = runs;
      const Schedule& schedule = schedules[static_cast<std::size_t>(index++ + runs) % schedules.size()];
      set_schedule(schedule.order, schedule.seed);
      const AttentionOutput output = run(packed);
      ASSERT_FALSE(HasFailure());
      EXPECT_THAT(output.kernel_spec, ::testing::HasSubstr(" heads=packed "));
      EXPECT_TRUE(output.o == wanted.o) << "O differs";
      EXPECT_TRUE(bits_of(output.lse) == bits_of(wanted.lse)) << "LSE differs";
    }
  }

  Engine engine_{std::get<0>(GetParam())};
};

TEST_P(PackedHeads, HaveTheBitsOfAHeadAWorkgroup) {
  struct Case {
    int queries, keys, kv_heads, group;
  };
  // Positions that straddle tiles, tiles that stand half empty, one row and 512; keys round tiles and chunks.
  constexpr std::array cases = {Case{1, 1, 2, 2},     Case{1, 63, 1, 16},   Case{2, 64, 2, 3},    Case{3, 65, 1, 6},
                                Case{4, 1023, 2, 8},  Case{7, 1024, 1, 6},  Case{16, 1025, 1, 4}, Case{1, 2049, 2, 8},
                                Case{16, 700, 1, 16}, Case{32, 300, 1, 16}, Case{2, 5000, 1, 16}, Case{3, 0, 2, 4}};
  for (int index = 0; index < static_cast<int>(cases.size()); ++index) {
    if (!in_part(index + dims().qk / 64, dims().qk > 128 ? 6 : 2)) continue;
    const Case& one = cases[static_cast<std::size_t>(index)];
    SCOPED_TRACE(std::format("q{} k{} h{}/{}", one.queries, one.keys, one.kv_heads * one.group, one.kv_heads));
    AttentionCase which = make(index % 3 == 0 ? 2 : 1, one.queries, one.keys, one.kv_heads, one.group, index % 2 == 1,
                               1500 + static_cast<std::uint64_t>(index));
    which.layout = std::array{Layout::bshd, Layout::bhsd, Layout::padded}[static_cast<std::size_t>(index) % 3];
    which.lse = index % 4 != 1;
    check(which, {1, 2, 5});
    if (HasFailure()) return;
  }
}

TEST_P(PackedHeads, Windows) {
  int index = 0;
  for (const auto& [left, right] : {std::pair{1200, 1}, {20, 0}, {-1, 3}}) {
    if (!in_part(index++ + (dims().qk / 64), 2)) continue;
    SCOPED_TRACE(std::format("window {},{}", left, right));
    AttentionCase which = make(1, 9, 2100, 1, 6, false, 1530);
    which.inputs.window = true;
    which.inputs.window_left = left;
    which.inputs.window_right = right;
    check(which, {1, 3});
  }
}

TEST_P(PackedHeads, ModifiersOfEveryHead) {
  AttentionCase which = make(2, 5, 1100, 2, 3, true, 1540);
  add_sink(which, 1.0);
  add_alibi(which, 2);
  check(which, {1, 2});
  add_bias(which, 2, which.inputs.query_heads, 1.0, 1541);
  which.inputs.softcap = 20;
  which.layout = Layout::bhsd;
  check(which, {1, 2});
  // One bias for all heads.
  add_bias(which, 1, 1, 1.0, 1542);
  check(which, {1});
}

// Sequences of no rows, of one and of many, with no keys, with a few and with several chunks of them.
TEST_P(PackedHeads, PackedSequences) {
  AttentionCase which = make(1, 1, 1, 2, 4, true, 1550);
  AttentionInputs& in = which.inputs;
  in.query_starts = in.key_starts = {0};
  for (const auto& [queries, keys] : {std::pair{1, 1300}, {0, 70}, {13, 2100}, {4, 0}, {1, 64}, {8, 1025}}) {
    in.query_length = std::max(in.query_length, queries);
    in.key_length = std::max(in.key_length, keys);
    in.query_starts.push_back(in.query_starts.back() + queries);
    in.key_starts.push_back(in.key_starts.back() + keys);
  }
  in.batch = static_cast<int>(in.query_starts.size()) - 1;
  const auto numbers = [&](int rows, int heads, int dim, std::uint64_t seed) {
    return normal_values(storage(), static_cast<std::size_t>(rows) * heads * dim, 1.0, seed);
  };
  in.q = numbers(in.query_rows(), in.query_heads, in.head_dim, 1551);
  in.k = numbers(in.key_rows(), in.kv_heads, in.head_dim, 1552);
  in.v = numbers(in.key_rows(), in.kv_heads, in.value_dim(), 1553);
  check(which, {1, 2, 3});
}

// Dense keys of which only some count.
TEST_P(PackedHeads, KeyLengths) {
  AttentionCase which = make(3, 2, 2300, 1, 8, true, 1560);
  which.inputs.key_lengths = {2300, 1057, 0};
  check(which, {1, 3});
}

// The widest heads take as long as all others: they wait for ./dev soak.
std::vector<Combination> combinations() {
  std::vector<Combination> chosen = {{"gfx942", Storage::bf16, Dims{128, 128}},
                                     {"gfx942", Storage::bf16, Dims{192, 128}},
                                     {"gfx950", Storage::bf16, Dims{128, 128}},
                                     {"gfx950", Storage::fp16, Dims{64, 64}}};
  if (whole_lists()) {
    chosen.emplace_back("gfx942", Storage::fp16, Dims{64, 64});
    chosen.emplace_back("gfx950", Storage::fp16, Dims{256, 256});
  }
  return chosen;
}

std::string name_of(const ::testing::TestParamInfo<Combination>& info) {
  const auto& [target, storage, dims] = info.param;
  return std::format("{}_{}_d{}_{}", target, storage == Storage::fp16 ? "fp16" : "bf16", dims.qk, dims.v);
}

INSTANTIATE_TEST_SUITE_P(All, PackedHeads, ::testing::ValuesIn(combinations()), name_of);

}  // namespace
}  // namespace wavejit::tests
