// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The float64 gradients against finite differences of the float64 forward half.
#include "templates/attention_backward/program/reference.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "support/normal_numbers.h"

namespace wavejit::tests {
namespace {

using attention::program::ScoreRules;
using attention_backward::program::backward;
using attention_backward::program::forward;
using attention_backward::program::Gradient;
using attention_backward::program::Gradients;
using attention_backward::program::Operands;
using attention_backward::program::Outputs;

// What the loss is: the sum of o and LSE, weighed by their gradients. A row that sees no key has no LSE.
double loss(const Operands& of) {
  const Outputs outputs = forward(of);
  double sum = 0;
  for (std::size_t i = 0; i < outputs.o.size(); ++i) sum += outputs.o[i] * of.d_o[i];
  for (std::size_t i = 0; i < of.d_lse.size(); ++i)
    if (std::isfinite(outputs.lse[i])) sum += outputs.lse[i] * of.d_lse[i];
  return sum;
}

Operands small(const std::vector<ScoreRules>& rules, std::int64_t rows, std::int64_t keys) {
  Operands of;
  of.rows = rows;
  of.keys = keys;
  of.dims_qk = 4;
  of.dims_v = 3;
  of.rules = rules;
  NormalNumbers normal(5);
  const auto fill = [&](std::vector<double>& values, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) values.push_back(static_cast<double>(normal()));
  };
  fill(of.q, of.group() * rows * of.dims_qk);
  fill(of.k, keys * of.dims_qk);
  fill(of.v, keys * of.dims_v);
  fill(of.d_o, of.group() * rows * of.dims_v);
  fill(of.d_lse, of.group() * rows);
  return of;
}

void expect_differences(const Operands& of, std::vector<double> Operands::* input, const Gradient& gradient,
                        const std::string& name) {
  constexpr double step = 1e-5;
  ASSERT_EQ((of.*input).size(), gradient.values.size());
  for (std::size_t i = 0; i < gradient.values.size(); ++i) {
    Operands moved = of;
    (moved.*input)[i] += step;
    const double above = loss(moved);
    (moved.*input)[i] -= 2 * step;
    const double difference = (above - loss(moved)) / (2 * step);
    ASSERT_NEAR(gradient.values[i], difference, 1e-7 * (1 + std::fabs(difference))) << name << "[" << i << "]";
    ASSERT_LE(std::fabs(gradient.values[i]), gradient.magnitudes[i] + 1e-12) << name << "[" << i << "]";
  }
}

void expect_sinks(const Operands& of, const Gradient& gradient) {
  constexpr double step = 1e-5;
  for (std::size_t head = 0; head < of.rules.size(); ++head) {
    double difference = 0;
    if (of.rules[head].sink) {
      Operands moved = of;
      *moved.rules[head].sink += step;
      const double above = loss(moved);
      *moved.rules[head].sink -= 2 * step;
      difference = (above - loss(moved)) / (2 * step);
    }
    ASSERT_NEAR(gradient.values[head], difference, 1e-7 * (1 + std::fabs(difference))) << "d_sink[" << head << "]";
    ASSERT_LE(std::fabs(gradient.values[head]), gradient.magnitudes[head] + 1e-12) << "d_sink[" << head << "]";
  }
}

void expect_gradients(const std::vector<ScoreRules>& rules, std::int64_t rows, std::int64_t keys, bool biased = false) {
  Operands of = small(rules, rows, keys);
  NormalNumbers normal(7);
  for (std::int64_t i = 0; biased && i < of.group() * rows * keys; ++i)
    of.bias.push_back(static_cast<double>(normal()));
  const Gradients gradients = backward(of);
  expect_differences(of, &Operands::q, gradients.dq, "dq");
  expect_differences(of, &Operands::k, gradients.dk, "dk");
  expect_differences(of, &Operands::v, gradients.dv, "dv");
  expect_sinks(of, gradients.d_sink);
  expect_differences(of, &Operands::bias, gradients.d_bias, "d_bias");
}

ScoreRules scaled(double scale, std::int64_t position = 0) {
  ScoreRules rules;
  rules.scale = scale;
  rules.position = position;
  return rules;
}
ScoreRules causal(double scale, std::int64_t diagonal) {
  ScoreRules rules = scaled(scale, diagonal);
  rules.diagonal = diagonal;
  return rules;
}

TEST(BackwardReference, IsTheFiniteDifference) { expect_gradients({scaled(0.4)}, 3, 5); }

TEST(BackwardReference, OfGroupsAndMasks) {
  expect_gradients({causal(0.4, 1), causal(0.4, 1), causal(0.4, 1)}, 4, 5);
  expect_gradients({causal(-0.4, -2)}, 5, 3);  // rows 0 and 1 see nothing
  ScoreRules window = scaled(0.4, 2);
  window.window_left = window.window_right = 1;
  expect_gradients({window}, 4, 6);
}

TEST(BackwardReference, OfModifiersAndSinks) {
  ScoreRules rules = scaled(0.7);
  rules.softcap = 1.5;
  expect_gradients({rules}, 3, 4);
  ScoreRules sloped = scaled(0.7, 1);
  sloped.slope = 0.3;
  ScoreRules less = sloped;
  less.slope = 0.1;
  expect_gradients({sloped, less}, 3, 4);
  ScoreRules all = causal(0.7, 1);
  all.softcap = 2;
  all.slope = 0.2;
  all.sink = 0.5;
  expect_gradients({all}, 3, 4);
  ScoreRules none = all;
  none.sink.reset();
  ScoreRules low = causal(0.7, -2);  // rows 0 and 1 see the sink alone
  low.sink = -0.4;
  expect_gradients({all, none}, 3, 4);
  expect_gradients({low}, 4, 3);
  expect_gradients({all, none}, 3, 4, true);
}

}  // namespace
}  // namespace wavejit::tests
