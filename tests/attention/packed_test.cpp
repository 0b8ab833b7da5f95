// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Packed sequences and lengths in device memory: against float64, against the same sequences alone (bit by bit), and
// with arrays that are wrong.
#include <gtest/gtest.h>

#include <climits>
#include <cmath>
#include <format>
#include <limits>
#include <numeric>
#include <span>
#include <string>
#include <tuple>

#include "attention/alone.h"
#include "attention/modified.h"

namespace wavejit::tests {
namespace {

using Combination = std::tuple<std::string, Storage, int>;
using Numbers = std::vector<std::int32_t>;

class AttentionPacked : public ::testing::TestWithParam<Combination> {
 protected:
  static constexpr int heads = 2;
  Storage storage() const { return std::get<1>(GetParam()); }
  int head_dim() const { return std::get<2>(GetParam()); }

  AttentionCase make(const Numbers& queries, const Numbers& keys, bool causal, std::uint64_t seed) const {
    AttentionCase which = make_case(storage(), 1, std::accumulate(queries.begin(), queries.end(), 0),
                                    std::accumulate(keys.begin(), keys.end(), 0), heads, 1, head_dim(), causal, seed);
    which.inputs.batch = static_cast<int>(queries.size());
    which.inputs.query_length = *std::ranges::max_element(queries);
    which.inputs.key_length = *std::ranges::max_element(keys);
    which.inputs.query_starts = starts_of(queries);
    which.inputs.key_starts = starts_of(keys);
    return which;
  }

  void expect_each_alone(const AttentionCase& which, const AttentionOutput& output) {
    const AttentionInputs& in = which.inputs;
    const std::size_t row_size = std::size_t(heads) * head_dim();
    set_schedule(WAVEJIT_SIMGPU_IN_ORDER, 1);
    for (int b = 0; b < in.batch; ++b) {
      if (in.queries(b) == 0) continue;
      const AttentionOutput one = run_attention(pipelines_.generic().get(), alone(which, b));
      ASSERT_EQ(one.status, WAVEJIT_OK) << one.detail << one.reports;
      const auto part = std::span(output.o).subspan(in.first_query(b) * row_size, in.queries(b) * row_size);
      EXPECT_TRUE(std::ranges::equal(one.o, part)) << "sequence " << b;
      const std::size_t batch = in.packed_queries() ? 0 : b;
      const int first = in.packed_queries() ? in.first_query(b) : 0;
      for (int h = 0; h < heads; ++h)
        for (int i = 0; i < in.queries(b); ++i)
          ASSERT_EQ(std::bit_cast<std::uint32_t>(one.lse[std::size_t(h) * in.queries(b) + i]),
                    std::bit_cast<std::uint32_t>(output.lse[(batch * heads + h) * in.query_rows() + first + i]))
              << "sequence " << b << " row " << i;
    }
  }

  void check(const AttentionCase& which) {
    const AttentionOutput output = pipelines_.check(which);
    if (output.status == WAVEJIT_OK) expect_each_alone(which, output);
  }

  Pipelines pipelines_{std::get<0>(GetParam())};
};

TEST_P(AttentionPacked, SelfAttention) {
  check(make({1, 3, 31, 33, 63, 65}, {1, 3, 31, 33, 63, 65}, false, 200));
  check(make({127, 129, 255, 257}, {127, 129, 255, 257}, true, 201));
}

TEST_P(AttentionPacked, QueriesAndKeysOfDifferentLengths) {
  check(make({1, 33, 3, 65, 31}, {63, 31, 65, 1, 33}, true, 202));
  check(make({65, 1, 40}, {3, 257, 129}, false, 203));
  check(make({127, 257}, {255, 129}, true, 203));
}

TEST_P(AttentionPacked, EmptySequences) {
  check(make({0, 5, 0, 33, 7, 0}, {9, 0, 0, 65, 70, 0}, true, 204));
  check(make({4, 0}, {0, 12}, false, 205));
}

TEST_P(AttentionPacked, Modifiers) {
  AttentionCase which = make({33, 5, 65}, {77, 65, 31}, true, 206);
  which.inputs.softcap = 2;
  add_alibi(which, 3);
  add_sink(which, 0.5);
  check(which);
  add_bias(which, 1, heads, 1, 207);
  check(which);
  which.inputs.causal = false;
  which.inputs.window = true;
  which.inputs.window_left = 12;
  which.inputs.window_right = 5;
  check(which);
}

TEST_P(AttentionPacked, Prefix) {
  AttentionCase which = make({33, 5, 65}, {77, 65, 31}, true, 208);
  which.inputs.prefix = 20;
  check(which);
}

TEST_P(AttentionPacked, QueriesWithDenseKeysAndLengths) {
  AttentionCase which = make({33, 1, 70}, {90, 90, 90}, true, 209);
  which.inputs.key_starts.clear();
  which.inputs.key_lengths = {90, 41, 0};
  check(which);
}

TEST_P(AttentionPacked, DenseQueriesWithPackedKeysAndLengths) {
  AttentionCase which = make({20, 20, 20}, {90, 33, 65}, false, 210);
  which.inputs.query_starts.clear();
  which.inputs.key_lengths = {64, 100, 1};  // 100: no more than there are
  check(which);
}

TEST_P(AttentionPacked, DenseWithLengths) {
  AttentionCase which = make_case(storage(), 3, 40, 100, heads, 1, head_dim(), true, 211);
  which.inputs.key_lengths = {100, 65, 33};
  add_bias(which, 3, 1, 1, 212);
  add_alibi(which, 3);
  check(which);
}

// Every second sequence is NaN, keys beyond a length too: whoever reads or writes over a border shows it.
TEST_P(AttentionPacked, NeighboursAreFences) {
  AttentionCase which = make({33, 64, 1, 20, 65}, {70, 64, 33, 64, 129}, true, 213);
  AttentionInputs& in = which.inputs;
  in.key_lengths = {65, 64, 31, 64, 100};
  const auto poison = [&](std::vector<float>& values, int first, int count, int row) {
    std::fill_n(values.begin() + std::size_t(first) * row, std::size_t(count) * row,
                std::numeric_limits<float>::quiet_NaN());
  };
  for (int b = 0; b < in.batch; ++b) {
    const int counted = b % 2 == 1 ? 0 : in.keys(b);
    const int rest = in.key_starts[b + 1] - in.key_starts[b] - counted;
    for (auto* values : {&in.k, &in.v}) poison(*values, in.first_key(b) + counted, rest, head_dim());
    if (b % 2 == 1) poison(in.q, in.first_query(b), in.queries(b), heads * head_dim());
  }
  const AttentionOutput output = pipelines_.run(which);
  ASSERT_EQ(output.status, WAVEJIT_OK);
  for (int b = 0; b < in.batch; ++b)
    for (std::size_t at = std::size_t(in.first_query(b)) * heads * head_dim();
         at < std::size_t(in.first_query(b) + in.queries(b)) * heads * head_dim(); ++at)
      ASSERT_EQ(std::isnan(from_storage(storage(), output.o[at])), b % 2 == 1) << "sequence " << b;
}

// Whatever the arrays hold: rows of the tensors or nothing, so every number that comes out is finite, and nothing
// around the tensors is touched.
TEST_P(AttentionPacked, WrongStartsStayInside) {
  leave_out(WAVEJIT_SIMGPU_CHECK_RACES);  // sequences that overlap own the same rows of O: who is last wins
  const Numbers wrong[] = {
      {0, 40, 20, 98, 98},
      {98, 64, 33, 1, 0},
      {-5, 20, 40, 60, 98},
      {0, 33, 64, 98, 1'000'000},
      {INT_MIN, INT_MAX, INT_MIN, INT_MAX, INT_MIN},
      {INT_MAX, INT_MAX, INT_MAX, INT_MAX, INT_MAX},
      {97, 1'000'000'000, -1, 98, 99},
  };
  const AttentionCase base = make({33, 31, 33, 1}, {33, 31, 33, 1}, true, 214);
  for (const bool queries : {false, true}) {
    for (const Numbers& starts : wrong) {
      SCOPED_TRACE(std::format("{} starts {} {} …", queries ? "query" : "key", starts[0], starts[1]));
      AttentionCase which = base;
      (queries ? which.query_starts : which.key_starts) = starts;
      for (const auto& engine : pipelines_.engines()) {
        const AttentionOutput output = run_attention(engine->get(), which);
        if (Pipelines::not_on_this_target(output)) continue;
        ASSERT_EQ(output.status, WAVEJIT_OK) << output.detail << output.reports;
        EXPECT_EQ(output.reports, "");
        EXPECT_TRUE(output.fence_intact);
        // 0x7FA5 stood in O before: rows that nobody owns.
        for (const std::uint16_t bits : output.o)
          ASSERT_TRUE(bits == 0x7FA5 || std::isfinite(from_storage(storage(), bits)));
      }
    }
  }
  for (const Numbers& lengths : {Numbers{-1, INT_MIN, 7, INT_MAX}, Numbers{1'000, 0, -7, 34}}) {
    AttentionCase which = base;
    which.inputs.key_lengths = lengths;
    for (const auto& engine : pipelines_.engines()) {
      const AttentionOutput output = run_attention(engine->get(), which);
      if (Pipelines::not_on_this_target(output)) continue;
      ASSERT_EQ(output.status, WAVEJIT_OK) << output.detail << output.reports;
      for (const std::uint16_t bits : output.o) ASSERT_TRUE(std::isfinite(from_storage(storage(), bits)));
    }
  }
}

std::string name_of(const ::testing::TestParamInfo<Combination>& info) {
  const auto [target, storage, head_dim] = info.param;
  return std::format("{}_{}_d{}", target, storage == Storage::fp16 ? "fp16" : "bf16", head_dim);
}

INSTANTIATE_TEST_SUITE_P(All, AttentionPacked,
                         ::testing::Values(Combination{"gfx942", Storage::bf16, 64},
                                           Combination{"gfx942", Storage::fp16, 128},
                                           Combination{"gfx950", Storage::fp16, 64},
                                           Combination{"gfx950", Storage::bf16, 128}),
                         name_of);

}  // namespace
}  // namespace wavejit::tests
