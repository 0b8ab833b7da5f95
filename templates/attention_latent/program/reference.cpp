// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_latent/program/reference.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace wavejit::attention_latent::program {
namespace {

std::vector<double> projected(const Projection& projection, std::span<const double> vector) {
  std::vector<double> result(projection.rows);
  for (const auto& [row, column, factor] : projection.elements) result[row] += factor * vector[column];
  return result;
}

double dot(std::span<const double> a, std::span<const double> b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

}  // namespace

ExactRow exact_row(const LatentRow& row, const Projections& projections, std::span<const double> compressed,
                   std::span<const double> ropes, std::span<const std::int64_t> keys,
                   const attention::program::ScoreRules& rules) {
  const auto latent = static_cast<std::size_t>(projections.latent);
  const std::size_t rope = row.rope.size();
  const std::size_t count = keys.size();
  std::vector<double> scores(count);
  for (std::size_t i = 0; i < count; ++i) {
    const auto key = static_cast<std::size_t>(keys[i]);
    const std::vector<double> nope = projected(projections.up_k, compressed.subspan(key * latent, latent));
    double score = rules.scale * (dot(row.nope, nope) + dot(row.rope, ropes.subspan(key * rope, rope)));
    if (rules.softcap != 0) score = rules.softcap * std::tanh(score / rules.softcap);
    scores[i] = score;
  }
  double maximum = rules.sink.value_or(-std::numeric_limits<double>::infinity());
  for (const double score : scores) maximum = std::max(maximum, score);
  const std::size_t dims = projections.up_v.rows;
  ExactRow exact = {.o = std::vector<double>(dims), .magnitudes = std::vector<double>(dims), .lse = maximum};
  if (std::isinf(maximum)) return exact;
  double sum = rules.sink ? std::exp(*rules.sink - maximum) : 0;
  for (double& score : scores) {
    score = std::exp(score - maximum);
    sum += score;
  }
  exact.lse = maximum + std::log(sum);
  for (std::size_t i = 0; i < count; ++i) {
    const auto key = static_cast<std::size_t>(keys[i]);
    const std::vector<double> value = projected(projections.up_v, compressed.subspan(key * latent, latent));
    const double weight = scores[i] / sum;
    for (std::size_t dim = 0; dim < dims; ++dim) {
      exact.o[dim] += weight * value[dim];
      exact.magnitudes[dim] += weight * std::abs(value[dim]);
    }
  }
  return exact;
}

}  // namespace wavejit::attention_latent::program
