// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A row of softmax_lse in float64, by the textbook: the greatest score, then the sum, then the quotient.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace wavejit::softmax_lse::program {

// Keys before and after the diagonal; −1: no limit.
struct Window {
  std::int64_t left;
  std::int64_t right;
};
// Row i stands at key i + diagonal.
struct SeenRules {
  bool causal = false;
  std::int64_t diagonal = 0;
  std::optional<Window> window;
};
// The keys first … end − 1 that a row of `keys` sees.
std::pair<std::int64_t, std::int64_t> seen_keys(const SeenRules& rules, std::int64_t row, std::int64_t keys);

struct ExactRow {
  std::vector<double> weights;
  double log_sum_exp;
};

// Keys begin … end − 1 are seen.
ExactRow exact_row(std::span<const float> scores, double scale, std::int64_t begin, std::int64_t end);

}  // namespace wavejit::softmax_lse::program
