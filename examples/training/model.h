// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A micro-batch's loss and gradients: forward, then each step backwards. Rows of all sequences stand one below the
// other.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "attention.h"
#include "parameters.h"

namespace training {

// Tokens of a sequence: length of them are read, and each one's successor is to be told.
using Sequence = std::vector<int>;

namespace model {

// Each row over the root of its mean square.
template <typename Real>
Real factor_of(const Matrix<Real>& x, int row) {
  Real squares = 0;
  for (int i = 0; i < x.columns; ++i) squares += x.row(row)[i] * x.row(row)[i];
  return 1 / std::sqrt(squares / static_cast<Real>(x.columns) + Real(1e-6));
}

template <typename Real>
Matrix<Real> normalised(const Matrix<Real>& x) {
  Matrix<Real> result = x;
  for (int r = 0; r < x.rows; ++r) {
    const Real factor = factor_of(x, r);
    for (int i = 0; i < x.columns; ++i) result.row(r)[i] *= factor;
  }
  return result;
}

template <typename Real>
Matrix<Real> normalised_back(const Matrix<Real>& gradient, const Matrix<Real>& x) {
  Matrix<Real> result(x.rows, x.columns);
  for (int r = 0; r < x.rows; ++r) {
    const Real factor = factor_of(x, r);
    Real along = 0;
    for (int i = 0; i < x.columns; ++i) along += gradient.row(r)[i] * x.row(r)[i];
    along *= factor * factor / static_cast<Real>(x.columns);
    for (int i = 0; i < x.columns; ++i) result.row(r)[i] = factor * (gradient.row(r)[i] - along * x.row(r)[i]);
  }
  return result;
}

// x · sigmoid(x), and its derivative.
template <typename Real>
Real silu(Real x) {
  return x / (1 + std::exp(-x));
}
template <typename Real>
Real silu_slope(Real x) {
  const Real sigmoid = 1 / (1 + std::exp(-x));
  return sigmoid * (1 + x * (1 - sigmoid));
}

// What a layer keeps from its forward to its backward.
template <typename Real>
struct Activations {
  Matrix<Real> input, normalised_input, attended, middle, normalised_middle, up, active;
};

template <typename Real>
Matrix<Real> embedded(const Parameters<Real>& parameters, std::span<const Sequence> sequences) {
  const int length = parameters.positions.rows;
  Matrix<Real> x(static_cast<int>(sequences.size()) * length, parameters.tokens.columns);
  for (int r = 0; r < x.rows; ++r)
    for (int i = 0; i < x.columns; ++i)
      x.row(r)[i] =
          parameters.tokens.row(sequences[r / length][r % length])[i] + parameters.positions.row(r % length)[i];
  return x;
}

template <typename Real>
Matrix<Real> layer_forward(const Layer<Real>& layer, int index, Attention<Real>& attention, const Matrix<Real>& x,
                           Activations<Real>& kept) {
  kept.input = x;
  kept.normalised_input = normalised(x);
  kept.attended = attention.forward(
      index, {multiply(kept.normalised_input, layer.query), multiply(kept.normalised_input, layer.key),
              multiply(kept.normalised_input, layer.value)});
  kept.middle = multiply(kept.attended, layer.output);
  add(kept.middle, x);
  kept.normalised_middle = normalised(kept.middle);
  kept.up = multiply(kept.normalised_middle, layer.up);
  kept.active = kept.up;
  for (Real& value : kept.active.values) value = silu(value);
  Matrix<Real> result = multiply(kept.active, layer.down);
  add(result, kept.middle);
  return result;
}

template <typename Real>
Matrix<Real> layer_backward(const Layer<Real>& layer, int index, Attention<Real>& attention, Matrix<Real> gradient,
                            const Activations<Real>& kept, Layer<Real>& gradients) {
  add_outer(gradients.down, gradient, kept.active);
  Matrix<Real> d_up = multiply_back(gradient, layer.down);
  for (std::size_t i = 0; i < d_up.values.size(); ++i) d_up.values[i] *= silu_slope(kept.up.values[i]);
  add_outer(gradients.up, d_up, kept.normalised_middle);
  add(gradient, normalised_back(multiply_back(d_up, layer.up), kept.middle));  // now that of `middle`

  add_outer(gradients.output, gradient, kept.attended);
  const QueryKeyValue<Real> d = attention.backward(index, multiply_back(gradient, layer.output));
  add_outer(gradients.query, d.query, kept.normalised_input);
  add_outer(gradients.key, d.key, kept.normalised_input);
  add_outer(gradients.value, d.value, kept.normalised_input);
  Matrix<Real> d_input = multiply_back(d.query, layer.query);
  add(d_input, multiply_back(d.key, layer.key));
  add(d_input, multiply_back(d.value, layer.value));
  add(gradient, normalised_back(d_input, kept.input));
  return gradient;
}

}  // namespace model

// The sum of the losses of all tokens; `gradients` gets its terms behind those that are there, sequence after sequence.
// So a batch in pieces, one after the other, leaves the bits of a batch in one.
template <typename Real>
Real loss_and_gradients(const Parameters<Real>& parameters, Attention<Real>& attention,
                        std::span<const Sequence> sequences, Parameters<Real>* gradients, Real loss = 0) {
  const int length = parameters.positions.rows;
  std::vector<model::Activations<Real>> kept(parameters.layers.size());
  Matrix<Real> x = model::embedded(parameters, sequences);
  for (std::size_t i = 0; i < kept.size(); ++i)
    x = model::layer_forward(parameters.layers[i], static_cast<int>(i), attention, x, kept[i]);
  const Matrix<Real> last = model::normalised(x);

  Matrix<Real> logits = multiply(last, parameters.unembedding);
  for (int r = 0; r < logits.rows; ++r) {  // from here on their gradient: softmax, less 1 at the token that came
    Real* row = logits.row(r);
    const int token = sequences[r / length][r % length + 1];
    const Real largest = *std::max_element(row, row + logits.columns);
    const Real of_token = row[token];
    Real sum = 0;
    for (int i = 0; i < logits.columns; ++i) sum += row[i] = std::exp(row[i] - largest);
    for (int i = 0; i < logits.columns; ++i) row[i] /= sum;
    row[token] -= 1;
    loss += largest + std::log(sum) - of_token;
  }
  if (gradients == nullptr) return loss;

  add_outer(gradients->unembedding, logits, last);
  Matrix<Real> gradient = model::normalised_back(multiply_back(logits, parameters.unembedding), x);
  for (std::size_t i = kept.size(); i-- > 0;)
    gradient = model::layer_backward(parameters.layers[i], static_cast<int>(i), attention, gradient, kept[i],
                                     gradients->layers[i]);
  for (int r = 0; r < gradient.rows; ++r)
    for (int i = 0; i < gradient.columns; ++i) {
      gradients->tokens.row(sequences[r / length][r % length])[i] += gradient.row(r)[i];
      gradients->positions.row(r % length)[i] += gradient.row(r)[i];
    }
  return loss;
}

}  // namespace training
