// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Gradients at the edges: rows and keys that nothing sees, sinks, strides, NaN. rows_test.cpp has the values of all shapes.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "attention_backward/backward_run.h"
#include "attention_backward/rows_apart.h"

namespace wavejit::tests {
namespace {

class Gradients : public ::testing::TestWithParam<const char*> {
 protected:
  BackwardOutput run(const Arrays& arrays, const ChangeCall& change = {}) {
    BackwardOutput output = run_backward(engine_.get(), arrays, change);
    EXPECT_EQ(output.status, WAVEJIT_OK) << output.detail << output.reports;
    EXPECT_EQ(output.reports, "");
    EXPECT_TRUE(output.fence_intact) << "something outside the gradients or the workspace was written";
    return output;
  }
  Engine engine_{GetParam()};
};

// Elsewhere q and dO, and k and v, must have one stride.
TEST_P(Gradients, OfTensorsThatHaveStridesOfTheirOwn) {
  const Arrays arrays = backward_arrays("bf16 b2 q70 k90 h4/2 d64 causal");
  const auto queries = attention::program::queries_of(arrays.experiment);
  const auto keys = attention::program::keys_of(arrays.experiment);
  // Rows `more` elements further apart than the heads that stand in them.
  const auto apart = [&](const attention::program::Placement& of, std::int64_t more) {
    const std::int64_t row = of.stride_of_token() + more;
    return std::make_unique<RowsApart>(engine_.get(), of, 2, row, (of.length * row) + (8 * more));
  };
  const auto q = apart(queries, 8);
  const auto d_o = apart(queries, 64);
  const auto o = apart(queries, 24);
  const auto k = apart(keys, 40);
  const auto v = apart(keys, 16);
  const auto dq = apart(queries, 32);
  const auto dk = apart(keys, 56);
  const auto dv = apart(keys, 72);
  q->write(arrays.q);
  d_o->write(arrays.d_o);
  o->write(arrays.o);
  k->write(arrays.k);
  v->write(arrays.v);
  const BackwardOutput together = run(arrays);
  EXPECT_EQ(wrong_gradients(arrays, together), "");
  (void)run(arrays, [&](wavejit_attention_backward_arguments& call) {
    q->describe(call.q);
    d_o->describe(call.d_o);
    o->describe(call.o);
    k->describe(call.k);
    v->describe(call.v);
    dq->describe(call.dq);
    dk->describe(call.dk);
    dv->describe(call.dv);
  });
  EXPECT_EQ(dq->read(), together.dq);
  EXPECT_EQ(dk->read(), together.dk);
  EXPECT_EQ(dv->read(), together.dv);
}

TEST_P(Gradients, OfPackedSequencesWithEmptyOnes) {
  const Arrays arrays =
      backward_arrays("bf16 b4 q100 k130 h2/1 d64 causal layout=packed q_lengths=100,0,33,7 k_lengths=130,40,0,5");
  const BackwardOutput output = run(arrays);
  EXPECT_EQ(wrong_gradients(arrays, output), "");
  // The second sequence has no rows: its keys' gradients are zeros, not NaN.
  for (std::size_t i = std::size_t{130} * 64; i < std::size_t{170} * 64; ++i) {
    ASSERT_EQ(output.dk[i], 0U);
    ASSERT_EQ(output.dv[i], 0U);
  }
}

TEST_P(Gradients, OfKeysThatDoNotCount) {
  const Arrays arrays = backward_arrays("fp16 b3 q40 k150 h1 d64 causal k_lengths=150,20,0");
  const BackwardOutput output = run(arrays);
  EXPECT_EQ(wrong_gradients(arrays, output), "");
  for (std::size_t i = std::size_t{170} * 64; i < std::size_t{450} * 64; ++i) ASSERT_EQ(output.dv[i], 0U);
}

// More rows than keys: the first see nothing. LSE is −∞ there, and their scores would be −∞ + ∞.
TEST_P(Gradients, OfRowsThatSeeNothing) {
  const Arrays arrays = backward_arrays("bf16 b1 q90 k20 h1 d64 causal");
  EXPECT_EQ(arrays.lse[0], -std::numeric_limits<float>::infinity());
  const BackwardOutput output = run(arrays);
  EXPECT_EQ(wrong_gradients(arrays, output), "");
  for (std::size_t i = 0; i < std::size_t{70} * 64; ++i) ASSERT_EQ(output.dq[i], 0U);
}

// All bits are one: rounded to bf16 by integers alone, such a NaN would carry over into a zero.
TEST_P(Gradients, OfANanWithALongPayload) {
  const auto all_ones = std::bit_cast<float>(~0U);
  const auto count_of_nan = [](const Arrays& arrays, const std::vector<std::uint32_t>& gradient) {
    return std::ranges::count_if(gradient, [&](std::uint32_t bits) { return std::isnan(gradient_of(arrays, bits)); });
  };
  constexpr int dims = 64;
  constexpr int keys = 40;
  Arrays arrays = backward_arrays("bf16 b1 q70 k40 h1 d64 delta");
  arrays.lse[5] = all_ones;
  BackwardOutput output = run(arrays);
  EXPECT_EQ(count_of_nan(arrays, output.dq), dims);
  EXPECT_EQ(count_of_nan(arrays, output.dk), keys * dims);
  EXPECT_EQ(count_of_nan(arrays, output.dv), keys * dims);

  arrays = backward_arrays("bf16 b1 q70 k40 h1 d64 delta");
  arrays.delta[5] = all_ones;
  output = run(arrays);
  EXPECT_EQ(count_of_nan(arrays, output.dq), dims);
  EXPECT_EQ(count_of_nan(arrays, output.dk), keys * dims);
  EXPECT_EQ(count_of_nan(arrays, output.dv), 0);

  // Slopes are no numbers of a row.
  arrays = backward_arrays("bf16 b1 q70 k40 h1 d64 alibi=h");
  arrays.slopes = {all_ones};
  output = run(arrays);
  EXPECT_GT(count_of_nan(arrays, output.dk), 0);
  EXPECT_GT(count_of_nan(arrays, output.dv), 0);
}

// A sink takes weight and gives no value: it stands in the LSE, and the kernels need not know of it.
TEST_P(Gradients, OfRowsWithASink) {
  using attention_backward::program::Operands;
  Arrays arrays = backward_arrays("bf16 b1 q70 k90 h1 d64 causal");
  Operands of;
  of.rows = 70;
  of.keys = 90;
  of.dims_qk = of.dims_v = 64;
  attention::program::ScoreRules rules;
  rules.scale = static_cast<double>(arrays.experiment.scale);
  rules.diagonal = rules.position = 20;
  rules.sink = 1.5;
  of.rules = {rules};
  const auto numbers = [&](const std::vector<std::uint16_t>& from) {
    std::vector<double> values;
    for (const std::uint16_t bits : from) values.push_back(gradient_of(arrays, bits));
    return values;
  };
  of.q = numbers(arrays.q);
  of.k = numbers(arrays.k);
  of.v = numbers(arrays.v);
  of.d_o = numbers(arrays.d_o);
  const auto outputs = attention_backward::program::forward(of);
  for (std::size_t i = 0; i < arrays.o.size(); ++i) arrays.o[i] = tools::encode(arrays.experiment.type, outputs.o[i]);
  for (std::size_t i = 0; i < arrays.lse.size(); ++i) arrays.lse[i] = static_cast<float>(outputs.lse[i]);
  const auto without = arrays.exact.dv.values;
  arrays.exact = attention_backward::program::backward(of);
  arrays.exact.d_sink = {};  // nobody asks for it
  EXPECT_NE(without, arrays.exact.dv.values);
  EXPECT_EQ(wrong_gradients(arrays, run(arrays)), "");
}

TEST_P(Gradients, OfASinkOfASequenceWithoutRowsIsZero) {
  const Arrays arrays =
      backward_arrays("bf16 b3 q33 k40 h2 d64 layout=packed q_lengths=33,0,7 k_lengths=40,5,0 d_sink gradients=fp32");
  const BackwardOutput output = run(arrays);
  EXPECT_EQ(wrong_gradients(arrays, output), "");
  EXPECT_EQ(output.d_sink.at(2), 0);
}

// A sink of −∞ is none, and a row that sees nothing has an LSE of −∞ then.
TEST_P(Gradients, OfSinksThatAreNone) {
  Arrays arrays = backward_arrays("bf16 b1 q90 k20 h1 d64 causal");
  arrays.sinks = {-std::numeric_limits<float>::infinity()};
  arrays.exact.d_sink = {.values = {0}, .magnitudes = {0}};
  const BackwardOutput output = run(arrays);
  EXPECT_EQ(wrong_gradients(arrays, output), "");
  EXPECT_EQ(output.d_sink.at(0), 0);
}

// A bias of −∞ hides keys, and rows of which it hides every one have an LSE of −∞.
TEST_P(Gradients, OfABiasThatHidesKeys) {
  Arrays arrays = backward_arrays("bf16 b1 q40 k64 h1 d64 bias=1 d_bias=fp32");
  for (std::size_t row = 0; row < 40; ++row)
    for (std::size_t key = 0; key < 64; ++key)
      if (row < 3 || key % 5 == 1) arrays.bias[(row * 64) + key] = -std::numeric_limits<float>::infinity();
  arrays.estimated = false;
  attention_backward::program::compute_outputs(arrays);
  arrays.exact = attention_backward::program::exact_gradients(arrays);
  EXPECT_EQ(arrays.lse[0], -std::numeric_limits<float>::infinity());
  const BackwardOutput output = run(arrays);
  EXPECT_EQ(wrong_gradients(arrays, output), "");
  for (std::size_t i = 0; i < std::size_t{3} * 64; ++i) ASSERT_EQ(output.d_bias[i], 0U);
}

TEST_P(Gradients, AreCloseToTheExactOnes) {
  const Arrays arrays = backward_arrays("bf16 b1 q512 k512 h1 d128 causal");
  const BackwardOutput output = run(arrays);
  EXPECT_GT(signal_to_noise(arrays, arrays.exact.dq, output.dq), 47);
  EXPECT_GT(signal_to_noise(arrays, arrays.exact.dk, output.dk), 47);
  EXPECT_GT(signal_to_noise(arrays, arrays.exact.dv, output.dv), 47);
}

INSTANTIATE_TEST_SUITE_P(Targets, Gradients, ::testing::Values("gfx942", "gfx950", "gfx1201"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace wavejit::tests
