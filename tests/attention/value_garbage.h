// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Cases whose unseen keys are not numbers.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <vector>

#include "support/attention_run.h"

namespace wavejit::tests {

// A sequence's keys that some row sees, from the first to the one behind the last.
struct SeenKeys {
  int begin;
  int end;
};
inline SeenKeys seen_keys(const AttentionInputs& in, int b) {
  SeenKeys seen{.begin = in.keys(b), .end = 0};
  for (int row = 0; row < in.queries(b); ++row) {
    const std::vector<double> scores = attention_scores(in, b, row, 0);
    for (int key = 0; key < in.keys(b); ++key) {
      if (scores[static_cast<std::size_t>(key)] == -std::numeric_limits<double>::infinity()) continue;
      seen.begin = std::min(seen.begin, key);
      seen.end = std::max(seen.end, key + 1);
    }
  }
  return seen;
}

// All others are NaN or infinite in K and in V, by turns, as their scales are; how many there are goes to `unseen`.
inline AttentionCase with_garbage(AttentionCase which, int& unseen) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  AttentionInputs& in = which.inputs;
  const AttentionInputs clean = in;
  constexpr float garbage[] = {std::numeric_limits<float>::quiet_NaN(), infinity, -infinity};
  for (int b = 0; b < in.batch; ++b) {
    const SeenKeys seen = seen_keys(clean, b);
    for (int key = 0; key < in.keys(b); ++key) {
      if (key >= seen.begin && key < seen.end) continue;
      ++unseen;
      for (int h = 0; h < in.kv_heads; ++h) {
        const std::size_t row = (std::size_t(in.first_key(b) + key) * in.kv_heads) + h;
        const auto fill = [&](std::vector<float>& of, int dims) {
          const auto begin = of.begin() + static_cast<std::ptrdiff_t>(row * std::size_t(dims));
          for (int dim = 0; dim < dims; ++dim) begin[dim] = garbage[(key + dim) % 3];
        };
        if (!which.integers) fill(in.k, in.head_dim);
        fill(in.v, in.value_dim());
        if (which.bytes && which.bytes->tokens)
          which.bytes->k_scale[row] = which.bytes->v_scale[row] = garbage[key % 3];
      }
    }
  }
  return which;
}

}  // namespace wavejit::tests
