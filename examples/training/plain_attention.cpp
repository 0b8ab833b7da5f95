// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <algorithm>
#include <cmath>

#include "attention.h"

namespace training {

namespace {

double dot(const double* a, const double* b, int count) {
  double sum = 0;
  for (int i = 0; i < count; ++i) sum += a[i] * b[i];
  return sum;
}

void add_scaled(double* to, double factor, const double* terms, int count) {
  for (int i = 0; i < count; ++i) to[i] += factor * terms[i];
}

}  // namespace

std::vector<double> PlainAttention::weights_of(const QueryKeyValue<double>& inputs, int first, int row,
                                               int head) const {
  const int dim = shape_.head_dim;
  const int kv_head = head / (shape_.query_heads / shape_.kv_heads);
  std::vector<double> weights;
  for (int key = 0; key <= row; ++key)
    weights.push_back(
        dot(inputs.query.row(first + row) + head * dim, inputs.key.row(first + key) + kv_head * dim, dim) /
        std::sqrt(static_cast<double>(dim)));
  const double largest = *std::max_element(weights.begin(), weights.end());
  double sum = 0;
  for (double& weight : weights) sum += weight = std::exp(weight - largest);
  for (double& weight : weights) weight /= sum;
  return weights;
}

Matrix<double> PlainAttention::forward(int layer, const QueryKeyValue<double>& inputs) {
  const int dim = shape_.head_dim;
  kept_[layer] = inputs;
  Matrix<double> answer(inputs.query.rows, inputs.query.columns);
  for (int r = 0; r < inputs.query.rows; ++r) {
    const int row = r % shape_.length;
    for (int head = 0; head < shape_.query_heads; ++head) {
      const int kv_head = head / (shape_.query_heads / shape_.kv_heads);
      const std::vector<double> weights = weights_of(inputs, r - row, row, head);
      for (int key = 0; key <= row; ++key)
        add_scaled(answer.row(r) + head * dim, weights[key], inputs.value.row(r - row + key) + kv_head * dim, dim);
    }
  }
  return answer;
}

QueryKeyValue<double> PlainAttention::backward(int layer, const Matrix<double>& gradient) {
  const QueryKeyValue<double>& inputs = kept_[layer];
  const int dim = shape_.head_dim;
  const double scale = 1 / std::sqrt(static_cast<double>(dim));
  QueryKeyValue<double> found{Matrix<double>(inputs.query.rows, inputs.query.columns),
                              Matrix<double>(inputs.key.rows, inputs.key.columns),
                              Matrix<double>(inputs.value.rows, inputs.value.columns)};
  for (int r = 0; r < gradient.rows; ++r) {
    const int row = r % shape_.length;
    const int first = r - row;
    for (int head = 0; head < shape_.query_heads; ++head) {
      const int of_kv = head / (shape_.query_heads / shape_.kv_heads) * dim;
      const double* d_out = gradient.row(r) + head * dim;
      const std::vector<double> weights = weights_of(inputs, first, row, head);
      std::vector<double> d_weights;
      double delta = 0;
      for (int key = 0; key <= row; ++key) {
        d_weights.push_back(dot(d_out, inputs.value.row(first + key) + of_kv, dim));
        delta += weights[key] * d_weights[key];
      }
      for (int key = 0; key <= row; ++key) {
        const double d_score = weights[key] * (d_weights[key] - delta);
        add_scaled(found.query.row(r) + head * dim, scale * d_score, inputs.key.row(first + key) + of_kv, dim);
        add_scaled(found.key.row(first + key) + of_kv, scale * d_score, inputs.query.row(r) + head * dim, dim);
        add_scaled(found.value.row(first + key) + of_kv, weights[key], d_out, dim);
      }
    }
  }
  return found;
}

}  // namespace training
