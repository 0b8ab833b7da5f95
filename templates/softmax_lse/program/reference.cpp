// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/softmax_lse/program/reference.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace wavejit::softmax_lse::program {

ExactRow exact_row(std::span<const float> scores, double scale, std::int64_t begin, std::int64_t end) {
  const double nothing = -std::numeric_limits<double>::infinity();
  ExactRow row = {.weights = std::vector<double>(scores.size()), .log_sum_exp = nothing};
  double greatest = nothing;
  for (std::int64_t key = begin; key < end; ++key) {
    const double score = scale * static_cast<double>(scores[static_cast<std::size_t>(key)]);
    greatest = std::max(greatest, score);
    if (std::isfinite(score)) row.largest = std::max(row.largest, std::fabs(score) * std::numbers::log2e);
  }
  if (greatest == nothing) return row;
  double sum = 0;
  for (std::int64_t key = begin; key < end; ++key) {
    const auto at = static_cast<std::size_t>(key);
    row.weights[at] = std::exp((scale * static_cast<double>(scores[at])) - greatest);
    sum += row.weights[at];
  }
  for (double& weight : row.weights) weight /= sum;
  row.log_sum_exp = greatest + std::log(sum);
  return row;
}

}  // namespace wavejit::softmax_lse::program
