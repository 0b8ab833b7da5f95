// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/sparse_indexer/program/reference.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace wavejit::sparse_indexer::program {

ExactScore exact_score(std::span<const float> queries, std::span<const float> weights, std::span<const float> key,
                       double scale) {
  ExactScore exact;
  for (std::size_t head = 0; head < weights.size(); ++head) {
    double product = 0;
    double size = 0;
    for (std::size_t dim = 0; dim < key.size(); ++dim) {
      const double term = static_cast<double>(queries[(head * key.size()) + dim]) * static_cast<double>(key[dim]);
      product += term;
      size += std::fabs(term);
    }
    const auto weight = static_cast<double>(weights[head]);
    if (!(product < 0)) exact.score += product * weight;
    exact.magnitude += size * std::fabs(weight);
  }
  exact.score *= scale;
  exact.magnitude *= std::fabs(scale);
  return exact;
}

std::vector<std::int32_t> sorted_list(std::span<const float> scores, std::int64_t begin, std::int64_t end,
                                      std::int64_t most) {
  std::vector<std::int32_t> keys;
  for (std::int64_t key = begin; key < end; ++key)
    if (scores[static_cast<std::size_t>(key)] != -std::numeric_limits<float>::infinity())
      keys.push_back(static_cast<std::int32_t>(key));
  const auto comes_first = [&](std::int32_t a, std::int32_t b) {
    const float of_a = scores[static_cast<std::size_t>(a)];
    const float of_b = scores[static_cast<std::size_t>(b)];
    if (std::isnan(of_a) != std::isnan(of_b)) return std::isnan(of_a);
    if (!std::isnan(of_a) && of_a != of_b) return of_a > of_b;
    return a < b;
  };
  std::ranges::sort(keys, comes_first);
  if (std::ssize(keys) > most) keys.resize(static_cast<std::size_t>(most));
  std::ranges::sort(keys);
  return keys;
}

}  // namespace wavejit::sparse_indexer::program
