// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A row of softmax_lse in float64, by the textbook: the greatest score, then the sum, then the quotient.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace wavejit::softmax_lse::program {

struct ExactRow {
  std::vector<double> weights;
  double log_sum_exp;
  double largest = 0;  // finite |score · log2 e|
};

// Keys begin … end − 1 are seen.
ExactRow exact_row(std::span<const float> scores, double scale, std::int64_t begin, std::int64_t end);

}  // namespace wavejit::softmax_lse::program
