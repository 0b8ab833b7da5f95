// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Sinks, lists of pages and the projection of values of latent attention. rows_test.cpp has the values of all shapes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "attention_latent/latent_run.h"

namespace wavejit::tests {
namespace {

class Latent : public ::testing::TestWithParam<const char*> {
 protected:
  LatentOutput run(const LatentArrays& arrays, const ChangeLatentCall& change = {}) {
    LatentOutput output = run_latent(engine_.get(), arrays, change);
    EXPECT_EQ(output.status, WAVEJIT_OK) << output.detail << output.reports;
    EXPECT_EQ(output.reports, "");
    EXPECT_TRUE(output.fence_intact) << "something outside O or LSE was written";
    return output;
  }

  Engine engine_{GetParam()};
};

// By one list of pages (CSR), whose entries end with the sequence's last page.
TEST_P(Latent, ReadsPagesByOneList) {
  for (const char* page : {"1", "16", "64"}) {
    const std::string words = "bf16 b3 q2 k150 h12 d576/512 causal lse layout=paged:" + std::string(page);
    const LatentArrays rows = latent_arrays(words + " k_lengths=150,0,67");
    const LatentArrays list = attention_latent::program::with_page_list(rows);
    const LatentOutput output = run(list);
    EXPECT_EQ(wrong_latent(list, output, 5), "") << page;
    EXPECT_EQ(output, run(rows)) << page;
  }
}

// A sink of −∞ is none, beside no keys, too; one beyond all scores leaves nothing to the values.
TEST_P(Latent, SinksOfMinusInfinityAreNone) {
  LatentArrays arrays = latent_arrays("bf16 b2 q1 k90 h12 d576/512 lse sink k_lengths=90,0");
  std::ranges::fill(arrays.sinks, -std::numeric_limits<float>::infinity());
  const LatentOutput none = run(arrays);
  EXPECT_EQ(wrong_latent(arrays, none), "");
  EXPECT_EQ(none.o, run(arrays, [](auto& call) { call.modifiers.sink = {}; }).o);
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

INSTANTIATE_TEST_SUITE_P(Targets, Latent, ::testing::Values("gfx942", "gfx950"),
                         [](const auto& parameter) { return std::string(parameter.param); });

}  // namespace
}  // namespace wavejit::tests
