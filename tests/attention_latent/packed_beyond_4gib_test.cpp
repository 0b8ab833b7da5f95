// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Packed sequences whose tensor spans more than 4 GiB, while each of them spans less: an offset that wraps in 32 bits
// would read or write something else.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "attention_backward/rows_apart.h"
#include "attention_latent/latent_run.h"

namespace wavejit::tests {
namespace {

class LatentPackedBeyond4GiB : public ::testing::TestWithParam<const char*> {
 protected:
  Engine engine_{GetParam()};
};

TEST_P(LatentPackedBeyond4GiB, HasTheBitsOfRowsThatLieTogether) {
  const LatentArrays arrays = latent_arrays(
      "bf16 b8 q64 k70 h3 d576/512 causal layout=packed q_lengths=64,1,64,64,0,64,64,64 k_lengths=70,9,64,70,3,70,64,70");
  const LatentOutput together = run_latent(engine_.get(), arrays);
  ASSERT_EQ(together.status, WAVEJIT_OK) << together.detail;
  const std::int64_t rows =
      std::accumulate(arrays.experiment.query_lengths.begin(), arrays.experiment.query_lengths.end(), std::int64_t{0});
  constexpr std::int64_t stride = 6'500'000;  // elements of two bytes: a sequence of 64 rows with 256 of tile overrun
  static_assert((64 + 255) * stride * 2 < std::int64_t{1} << 32U);
  ASSERT_GT(rows * stride * 2, std::int64_t{1} << 32U);
  const auto apart = [&](std::int64_t dims) {
    return RowsApart(engine_.get(), {.batch = 1, .length = rows, .heads = 3, .head_dim = dims}, 2, stride, 0);
  };
  const RowsApart q = apart(576);
  const RowsApart o = apart(512);
  q.write(arrays.q);
  const LatentOutput far = run_latent(engine_.get(), arrays, [&](auto& call) {
    q.describe(call.q);
    o.describe(call.o);
  });
  ASSERT_EQ(far.status, WAVEJIT_OK) << far.detail;
  EXPECT_EQ(far.reports, "");
  const std::vector<std::uint32_t> found = o.read();
  EXPECT_TRUE(std::equal(found.begin(), found.end(), together.o.begin(), together.o.end()));
}

INSTANTIATE_TEST_SUITE_P(Targets, LatentPackedBeyond4GiB, ::testing::Values("gfx942", "gfx950"),
                         [](const auto& parameter) { return std::string(parameter.param); });

}  // namespace
}  // namespace wavejit::tests
