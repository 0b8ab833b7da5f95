// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// attention_latent on the simulated GPU against float64 before absorption, element by element, under every check.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "attention/schedules.h"
#include "attention_latent/latent_run.h"

namespace wavejit::tests {
namespace {

using ::testing::HasSubstr;

class Latent : public ::testing::TestWithParam<const char*> {
 protected:
  LatentOutput run(const LatentArrays& arrays, const ChangeLatentCall& change = {}) {
    LatentOutput output = run_latent(engine_.get(), arrays, change);
    EXPECT_EQ(output.status, WAVEJIT_OK) << output.detail << output.reports;
    EXPECT_EQ(output.reports, "");
    EXPECT_TRUE(output.fence_intact) << "something outside O or LSE was written";
    return output;
  }
  void matches(const std::string& words, std::int64_t step = 1) {
    SCOPED_TRACE(words);
    const LatentArrays arrays = latent_arrays(words);
    EXPECT_EQ(wrong_latent(arrays, run(arrays), step), "");
  }

  Engine engine_{GetParam()};
};

TEST_P(Latent, MatchesFloat64AtEveryLength) {
  for (const int keys : {0, 1, 63, 64, 65, 130})
    matches("bf16 b1 q1 k" + std::to_string(keys) + " h16 d576/512 lse", 5);
  matches("fp16 b2 q1 k129 h16 d576/512 lse", 5);
}

// The numbers of heads that models have, of which variant tables of others abort (8, 12), repeat queries, or answer
// wrongly (q 8 of 16 heads).
TEST_P(Latent, MatchesFloat64WithAnyNumberOfHeads) {
  for (const int heads : {1, 8, 12, 20, 24, 48, 96, 128})
    matches("bf16 b1 q1 k70 h" + std::to_string(heads) + " d576/512 lse", heads > 8 ? 9 : 1);
  matches("bf16 b1 q8 k90 h16 d576/512 causal lse", 11);
  matches("bf16 b1 q5 k90 h8 d576/512 causal lse", 7);
}

TEST_P(Latent, MatchesFloat64WithEveryWidth) {
  matches("bf16 b2 q2 k100 h12 d512 causal lse k_lengths=100,31", 7);
  matches("fp16 b2 q3 k100 h20 d320/256 causal lse k_lengths=64,100", 7);
  matches("bf16 b1 q1 k100 h40 d320/256 lse apart", 7);
  matches("bf16 b2 q2 k80 h16 d576/512 apart lse", 7);
}

TEST_P(Latent, MatchesFloat64OverChunks) {
  matches("bf16 b1 q1 k2100 h16 d576/512 lse splits=1", 15);
  matches("bf16 b1 q1 k2100 h16 d576/512 lse splits=3", 15);
  matches("fp16 b1 q2 k1100 h24 d576/512 causal lse splits=2", 23);
}

TEST_P(Latent, MatchesFloat64InPages) {
  for (const char* page : {"1", "16", "64", "192"})
    matches("bf16 b2 q2 k150 h12 d576/512 causal lse layout=paged:" + std::string(page) + " k_lengths=150,67", 5);
  matches("bf16 b2 q3 k150 h12 d576/512 causal apart layout=paged:64 q_lengths=1,3 k_lengths=150,0 lse", 5);
  // By one list of pages (CSR), whose entries end with the sequence's last page.
  for (const char* page : {"1", "16", "64"}) {
    const std::string words = "bf16 b3 q2 k150 h12 d576/512 causal lse layout=paged:" + std::string(page);
    const LatentArrays rows = latent_arrays(words + " k_lengths=150,0,67");
    const LatentArrays list = attention_latent::program::with_page_list(rows);
    const LatentOutput output = run(list);
    EXPECT_EQ(wrong_latent(list, output, 5), "") << page;
    EXPECT_EQ(output, run(rows)) << page;
  }
}

TEST_P(Latent, MatchesFloat64WithModifiers) {
  matches("bf16 b2 q2 k90 h12 d576/512 causal lse sink softcap=20 k_lengths=90,1", 5);
  matches("bf16 b1 q3 k90 h12 d576/512 causal=40 lse sink scale=-0.05", 5);
  matches("fp16 b3 q4 k90 h10 d576/512 causal lse layout=packed q_lengths=4,1,2 k_lengths=33,90,0", 3);
}

// A sink of −∞ is none, beside no keys, too; one beyond all scores leaves nothing to the values.
TEST_P(Latent, SinksOfMinusInfinityAreNone) {
  LatentArrays arrays = latent_arrays("bf16 b2 q1 k90 h12 d576/512 lse sink k_lengths=90,0");
  std::ranges::fill(arrays.sinks, -std::numeric_limits<float>::infinity());
  const LatentOutput none = run(arrays);
  EXPECT_EQ(wrong_latent(arrays, none), "");
  EXPECT_EQ(none.o, run(arrays, [](auto& call) { call.sink = {}; }).o);
  EXPECT_EQ(none.lse.back(), std::bit_cast<std::uint32_t>(-std::numeric_limits<float>::infinity()));
  std::ranges::fill(arrays.sinks, 1e30F);
  const LatentOutput all = run(arrays);
  EXPECT_TRUE(std::ranges::all_of(all.o, [](std::uint16_t bits) { return bits == 0 || bits == 0x8000; }));
  EXPECT_TRUE(std::ranges::all_of(all.lse, [](std::uint32_t bits) { return std::bit_cast<float>(bits) == 1e30F; }));
}

// The up-projections of values behind it: what a model does with O.
TEST_P(Latent, MatchesFloat64BehindTheProjectionOfValues) {
  const LatentArrays arrays = latent_arrays("bf16 b1 q2 k70 h16 d576/512 causal");
  const LatentOutput output = run(arrays);
  for (const std::int64_t head : {0, 7, 15}) {
    const auto exact = attention_latent::program::exact_row_of(arrays, 0, head, 1, true);
    const auto bounds =
        attention_latent::program::bounds_of(arrays, attention_latent::program::exact_row_of(arrays, 0, head, 1));
    const auto projections = attention_latent::program::projections_of(arrays, head, true);
    const LatentRowBits bits = row_of(arrays, output, 0, 1, head);
    std::vector<double> got(exact.o.size());
    std::vector<double> allowed(exact.o.size());
    for (const auto& [row, column, factor] : projections.up_v.elements) {
      got[row] += factor * static_cast<double>(tools::decode(arrays.experiment.type, bits.o[column]));
      allowed[row] += std::abs(factor) * bounds[column];
    }
    for (std::size_t dim = 0; dim < got.size(); ++dim)
      EXPECT_NEAR(got[dim], exact.o[dim], allowed[dim]) << head << " " << dim;
  }
}

// Each case under three orders of waves, with every check: the same bits.
TEST_P(Latent, ShowsNoOrderOfWaves) {
  for (const char* words :
       {"bf16 b2 q2 k200 h24 d576/512 causal lse k_lengths=200,65", "bf16 b1 q1 k1100 h40 d576/512 lse splits=2",
        "fp16 b2 q1 k140 h9 d576/512 lse layout=paged:16 k_lengths=140,3",
        "fp16 b2 q1 k140 h9 d576/512 lse layout=paged:1 k_lengths=140,3"}) {
    SCOPED_TRACE(words);
    const LatentArrays arrays = latent_arrays(words);
    LatentOutput first;
    for (const Schedule& schedule : schedules) {
      set_schedule(schedule.order, schedule.seed);
      LatentOutput output = run(arrays);
      if (schedule.seed == schedules.front().seed) {
        EXPECT_EQ(wrong_latent(arrays, output, 7), "");
        first = std::move(output);
      } else {
        EXPECT_EQ(output, first);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, Latent, ::testing::Values("gfx942", "gfx950"),
                         [](const auto& parameter) { return std::string(parameter.param); });

}  // namespace
}  // namespace wavejit::tests
