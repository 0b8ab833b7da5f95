// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Packed sequences and lengths in device memory: beside sequences that are NaN, and with arrays that are wrong. Against
// float64 and sequences alone they are rows of value_rows.txt.
#include <gtest/gtest.h>

#include <climits>
#include <cmath>
#include <format>
#include <limits>
#include <numeric>
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

  Pipelines pipelines_{std::get<0>(GetParam())};
};

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
