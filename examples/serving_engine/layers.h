// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Everything of a decoder but attention, one token at a time: the engine computes it in float, the reference in double.
// A real engine runs GEMMs on the device here; what matters for batching is that a token's row never sees another row.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "model.h"

namespace serving {

template <typename Real>
using Row = std::vector<Real>;

// Rows first … first + count - 1 of the matrix, times x.
template <typename Real>
Row<Real> multiply(const Matrix& matrix, const Row<Real>& x, int first, int count) {
  Row<Real> result(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) {
    const float* weights = matrix.row(first + i);
    Real sum = 0;
    for (int j = 0; j < matrix.columns; ++j) sum += static_cast<Real>(weights[j]) * x[j];
    result[i] = sum;
  }
  return result;
}

template <typename Real>
Row<Real> multiply(const Matrix& matrix, const Row<Real>& x) {
  return multiply(matrix, x, 0, matrix.rows);
}

template <typename Real>
Row<Real> normalised(Row<Real> x) {
  Real squares = 0;
  for (const Real value : x) squares += value * value;
  const Real factor = 1 / std::sqrt(squares / static_cast<Real>(x.size()) + Real(1e-6));
  for (Real& value : x) value *= factor;
  return x;
}

template <typename Real>
Row<Real> embed(const Model& model, int token, int position) {
  Row<Real> hidden(static_cast<std::size_t>(model.shape.hidden));
  for (int i = 0; i < model.shape.hidden; ++i)
    hidden[i] = static_cast<Real>(model.tokens.row(token)[i]) + static_cast<Real>(model.positions.row(position)[i]);
  return hidden;
}

// The rest of a layer, given what attention answered: [query_heads · head_dim].
template <typename Real>
void finish_layer(const Layer& layer, const Row<Real>& attended, Row<Real>& hidden) {
  const auto add = [&hidden](const Row<Real>& x) {
    for (std::size_t i = 0; i < x.size(); ++i) hidden[i] += x[i];
  };
  add(multiply(layer.output, attended));
  Row<Real> inner = multiply(layer.up, normalised(hidden));
  for (Real& value : inner) value = std::max(value, Real(0));
  add(multiply(layer.down, inner));
}

template <typename Real>
Row<Real> logits_of(const Model& model, const Row<Real>& hidden) {
  return multiply(model.unembedding, normalised(hidden));
}

// Greedy: the first of the largest.
template <typename Real>
int best_token(const Row<Real>& logits) {
  return static_cast<int>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

}  // namespace serving
