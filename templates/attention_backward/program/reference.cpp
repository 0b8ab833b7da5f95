// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_backward/program/reference.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

namespace wavejit::attention_backward::program {
namespace {

using attention::program::ScoreRules;
using attention::program::visible_keys;

const double* at(const std::vector<double>& values, std::int64_t row, std::int64_t dims) {
  return values.data() + (row * dims);
}
double* at(std::vector<double>& values, std::int64_t row, std::int64_t dims) { return values.data() + (row * dims); }

double dot(const double* a, const double* b, std::int64_t dims) {
  double sum = 0;
  for (std::int64_t d = 0; d < dims; ++d) sum += a[d] * b[d];
  return sum;
}

// A row's scores behind everything that they pass through, and what each of them has of the derivative by its product
// scale · q · k; its weights, output and LSE.
struct Row {
  std::int64_t first = 0;
  std::vector<double> weights;  // of the keys from `first` on
  std::vector<double> slopes;
  std::vector<double> output;
  double lse = -std::numeric_limits<double>::infinity();
};

Row row_of(const Operands& of, std::int64_t head, std::int64_t row) {
  const ScoreRules& rules = of.rules[static_cast<std::size_t>(head)];
  const auto [first, end] = visible_keys(rules, row, of.keys);
  Row result;
  result.first = first;
  result.output.resize(static_cast<std::size_t>(of.dims_v));
  const double* q = at(of.q, (head * of.rows) + row, of.dims_qk);
  double most = rules.sink.value_or(-std::numeric_limits<double>::infinity());
  for (std::int64_t key = first; key < end; ++key) {
    double score = rules.scale * dot(q, at(of.k, key, of.dims_qk), of.dims_qk);
    double slope = 1;
    if (rules.softcap != 0) {
      const double share = std::tanh(score / rules.softcap);
      score = rules.softcap * share;
      slope *= 1 - (share * share);
    }
    if (!of.bias.empty()) score += at(of.bias, (head * of.rows) + row, of.keys)[key];
    score -= rules.slope * static_cast<double>(std::abs(row + rules.position - key));
    result.weights.push_back(score);
    result.slopes.push_back(slope);
    most = std::max(most, score);
  }
  if (!of.given.lse.empty()) {
    const auto number = static_cast<std::size_t>((head * of.rows) + row);
    result.lse = of.given.lse[number];
    for (double& score : result.weights) score = std::exp(score - result.lse);
    const double* o = at(of.given.o, static_cast<std::int64_t>(number), of.dims_v);
    result.output.assign(o, o + of.dims_v);
    return result;
  }
  if (std::isinf(most)) {
    std::ranges::fill(result.weights, 0.0);  // of a bias that hides every key, or beside a sink of ∞
    result.lse = most;
    return result;
  }
  double sum = rules.sink ? std::exp(*rules.sink - most) : 0;
  for (const double score : result.weights) sum += std::exp(score - most);
  result.lse = most + std::log(sum);
  for (double& score : result.weights) score = std::exp(score - result.lse);
  for (std::size_t i = 0; i < result.weights.size(); ++i) {
    const double* v = at(of.v, first + static_cast<std::int64_t>(i), of.dims_v);
    for (std::size_t d = 0; d < result.output.size(); ++d) result.output[d] += result.weights[i] * v[d];
  }
  return result;
}

Gradient zeros(std::int64_t rows, std::int64_t dims) {
  const auto count = static_cast<std::size_t>(rows * dims);
  return {.values = std::vector<double>(count), .magnitudes = std::vector<double>(count)};
}

// sum ← sum + factor · row, and what it amounts to with a factor of this magnitude.
void add(Gradient& sum, std::int64_t to, double factor, double magnitude, const double* row, std::int64_t dims) {
  double* values = at(sum.values, to, dims);
  double* magnitudes = at(sum.magnitudes, to, dims);
  for (std::int64_t d = 0; d < dims; ++d) {
    values[d] += factor * row[d];
    magnitudes[d] += magnitude * std::fabs(row[d]);
  }
}

}  // namespace

Outputs forward(const Operands& of) {
  Outputs outputs;
  for (std::int64_t head = 0; head < of.group(); ++head)
    for (std::int64_t row = 0; row < of.rows; ++row) {
      const Row one = row_of(of, head, row);
      outputs.o.insert(outputs.o.end(), one.output.begin(), one.output.end());
      outputs.lse.push_back(one.lse);
    }
  return outputs;
}

Gradients backward(const Operands& of) {
  Gradients sums = {.dq = zeros(of.group() * of.rows, of.dims_qk),
                    .dk = zeros(of.keys, of.dims_qk),
                    .dv = zeros(of.keys, of.dims_v),
                    .d_sink = zeros(of.group(), 1),
                    .d_bias = zeros(of.bias.empty() ? 0 : of.group() * of.rows, of.keys)};
  for (std::int64_t head = 0; head < of.group(); ++head)
    for (std::int64_t row = 0; row < of.rows; ++row) {
      const std::int64_t number = (head * of.rows) + row;
      const Row one = row_of(of, head, row);
      const double* d_o = at(of.d_o, number, of.dims_v);
      double delta = 0;
      double delta_magnitude = 0;  // o is rounded, and delta is made of it
      for (std::int64_t d = 0; d < of.dims_v; ++d) {
        const double term = d_o[d] * one.output[static_cast<std::size_t>(d)];
        delta += term;
        delta_magnitude += std::fabs(term);
      }
      if (!of.d_lse.empty()) delta -= of.d_lse[static_cast<std::size_t>(number)];
      const double scale = of.rules[static_cast<std::size_t>(head)].scale;
      const double of_dq = of.dq_unscaled ? 1 : scale;
      const double of_dk = of.dk_unscaled ? 1 : scale;
      // The sink's share of the row; it gives no value, so its dP is 0.
      if (const auto& sink = of.rules[static_cast<std::size_t>(head)].sink;
          sink && one.lse != -std::numeric_limits<double>::infinity()) {
        const double share = *sink == one.lse ? 1 : std::exp(*sink - one.lse);
        sums.d_sink.values[static_cast<std::size_t>(head)] -= share * delta;
        sums.d_sink.magnitudes[static_cast<std::size_t>(head)] += share * (std::fabs(delta) + delta_magnitude);
      }
      for (std::size_t i = 0; i < one.weights.size(); ++i) {
        const std::int64_t key = one.first + static_cast<std::int64_t>(i);
        const double weight = one.weights[i];
        const double d_weight = dot(d_o, at(of.v, key, of.dims_v), of.dims_v);
        const double slope = one.slopes[i];
        const double d_product = weight * (d_weight - delta) * slope;
        const double magnitude = weight * (std::fabs(d_weight - delta) + delta_magnitude) * std::fabs(slope);
        if (!of.bias.empty()) {
          const auto element = static_cast<std::size_t>((number * of.keys) + key);
          sums.d_bias.values[element] = weight * (d_weight - delta);
          sums.d_bias.magnitudes[element] = weight * (std::fabs(d_weight - delta) + delta_magnitude);
        }
        add(sums.dv, key, weight, weight, d_o, of.dims_v);
        add(sums.dq, number, of_dq * d_product, std::fabs(of_dq) * magnitude, at(of.k, key, of.dims_qk), of.dims_qk);
        add(sums.dk, key, of_dk * d_product, std::fabs(of_dk) * magnitude, at(of.q, number, of.dims_qk), of.dims_qk);
      }
    }
  return sums;
}

}  // namespace wavejit::attention_backward::program
