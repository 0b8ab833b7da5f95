// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Packed sequences whose tensors span more than 4 GiB, while each of them spans less: an offset that wraps in 32 bits
// would read or write something else.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>

#include "attention_backward/backward_run.h"
#include "attention_backward/rows_apart.h"

namespace wavejit::tests {
namespace {

using attention::program::Placement;

class GradientsBeyond4GiB : public ::testing::TestWithParam<const char*> {
 protected:
  Engine engine_{GetParam()};
};

TEST_P(GradientsBeyond4GiB, HaveTheBitsOfRowsThatLieTogether) {
  const Arrays arrays = backward_arrays(
      "bf16 b7 q70 k80 h4/2 d64 causal layout=packed q_lengths=70,1,70,64,70,70,66 k_lengths=80,80,3,80,70,70,80");
  const BackwardOutput together = run_backward(engine_.get(), arrays);
  ASSERT_EQ(together.status, WAVEJIT_OK) << together.detail;
  constexpr std::int64_t stride = 6'300'000;  // elements of two bytes: a sequence with 256 rows of tile overrun
  static_assert((80 + 255) * stride * 2 < std::int64_t{1} << 32U);
  const Placement queries = attention::program::queries_of(arrays.experiment);
  const Placement keys = attention::program::keys_of(arrays.experiment);
  ASSERT_GT(queries.length * stride * 2, std::int64_t{1} << 32U);
  ASSERT_GT(keys.length * stride * 2, std::int64_t{1} << 32U);
  const auto apart = [&](const Placement& of) { return std::make_unique<RowsApart>(engine_.get(), of, 2, stride, 0); };
  // Half of them at a time: a device has no room for all.
  {
    const auto q = apart(queries);
    const auto k = apart(keys);
    const auto dq = apart(queries);
    const auto dk = apart(keys);
    q->write(arrays.q);
    k->write(arrays.k);
    const BackwardOutput far = run_backward(engine_.get(), arrays, [&](wavejit_attention_backward_arguments& call) {
      q->describe(call.q);
      k->describe(call.k);
      dq->describe(call.dq);
      dk->describe(call.dk);
    });
    ASSERT_EQ(far.status, WAVEJIT_OK) << far.detail;
    EXPECT_EQ(far.reports, "");
    EXPECT_TRUE(dq->read() == together.dq);
    EXPECT_TRUE(dk->read() == together.dk);
    EXPECT_TRUE(far.dv == together.dv);
  }
  const auto v = apart(keys);
  const auto o = apart(queries);
  const auto d_o = apart(queries);
  const auto dv = apart(keys);
  v->write(arrays.v);
  o->write(arrays.o);
  d_o->write(arrays.d_o);
  const BackwardOutput far = run_backward(engine_.get(), arrays, [&](wavejit_attention_backward_arguments& call) {
    v->describe(call.v);
    o->describe(call.o);
    d_o->describe(call.d_o);
    dv->describe(call.dv);
  });
  ASSERT_EQ(far.status, WAVEJIT_OK) << far.detail;
  EXPECT_EQ(far.reports, "");
  EXPECT_TRUE(far.dq == together.dq);
  EXPECT_TRUE(far.dk == together.dk);
  EXPECT_TRUE(dv->read() == together.dv);
}

INSTANTIATE_TEST_SUITE_P(Targets, GradientsBeyond4GiB, ::testing::Values("gfx942", "gfx950", "gfx1201"),
                         [](const auto& parameter) { return std::string(parameter.param); });

}  // namespace
}  // namespace wavejit::tests
