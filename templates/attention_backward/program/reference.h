// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Gradients of attention in float64, from their definition: of one sequence and one kv head with its query heads. It
// shares nothing with the kernels; tests/attention_backward compares it with finite differences of its own forward
// half.
#pragma once

#include <cstdint>
#include <vector>

#include "templates/attention/program/score_rules.h"

namespace wavejit::attention_backward::program {

struct Outputs {
  std::vector<double> o;
  std::vector<double> lse;  // −∞ of a row that sees no key
};

// Arrays: [head of the group][row][dim], [key][dim].
struct Operands {
  std::int64_t rows = 0;
  std::int64_t keys = 0;
  std::int64_t dims_qk = 0;
  std::int64_t dims_v = 0;
  std::vector<attention::program::ScoreRules> rules;  // of each head of the group
  std::vector<double> q;
  std::vector<double> k;
  std::vector<double> v;
  std::vector<double> d_o;    // the gradient of o
  std::vector<double> d_lse;  // the gradient of LSE [head][row]; empty: 0
  std::vector<double> bias;   // added to scores [head][row][key]; empty: none
  // Sums that a later call goes on with: the scale comes last.
  bool dq_unscaled = false;
  bool dk_unscaled = false;
  // Taken as what the forward call wrote, whatever it would be; empty: computed.
  Outputs given;

  std::int64_t group() const { return static_cast<std::int64_t>(rules.size()); }
};

Outputs forward(const Operands& operands);

// A gradient, and of each element what its terms amount to: rounding P, dS and o by a unit roundoff u moves it by at
// most u · magnitude.
struct Gradient {
  std::vector<double> values;
  std::vector<double> magnitudes;
};
struct Gradients {
  Gradient dq;
  Gradient dk;
  Gradient dv;
  Gradient d_sink;  // of each head of the group; 0 of one without
  Gradient d_bias;  // shaped as the bias
};
Gradients backward(const Operands& operands);

}  // namespace wavejit::attention_backward::program
