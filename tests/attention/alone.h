// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Sequences of a batch, each as a call of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "support/attention_run.h"

namespace wavejit::tests {

inline std::vector<std::int32_t> starts_of(const std::vector<std::int32_t>& lengths) {
  std::vector<std::int32_t> starts = {0};
  for (const std::int32_t length : lengths) starts.push_back(starts.back() + length);
  return starts;
}

template <typename T>
std::vector<T> slice(const std::vector<T>& values, std::size_t first, std::size_t count, std::size_t size) {
  return {values.begin() + first * size, values.begin() + (first + count) * size};
}

// Sequence b as a call of its own.
inline AttentionCase alone(const AttentionCase& which, int b) {
  const AttentionInputs& in = which.inputs;
  AttentionCase one = which;
  const int queries = in.queries(b);
  const int keys = in.keys(b);
  one.inputs.batch = 1;
  one.inputs.query_length = queries;
  one.inputs.key_length = keys;
  one.inputs.query_starts.clear();
  one.inputs.key_starts.clear();
  one.inputs.key_lengths.clear();
  one.pages.reset();
  one.inputs.q = slice(in.q, in.first_query(b), queries, std::size_t(in.query_heads) * in.head_dim);
  one.inputs.k = slice(in.k, in.first_key(b), keys, std::size_t(in.kv_heads) * in.head_dim);
  one.inputs.v = slice(in.v, in.first_key(b), keys, std::size_t(in.kv_heads) * in.value_dim());
  if (!in.alibi.empty() && in.alibi.size() > std::size_t(in.query_heads))
    one.inputs.alibi = slice(in.alibi, b, 1, in.query_heads);
  if (!in.bias.empty()) {
    one.inputs.bias.clear();
    one.inputs.bias_batches = 1;
    const int first = in.packed_queries() ? in.first_query(b) : 0;
    const int batch = in.bias_batches > 1 ? b : 0;
    for (int h = 0; h < in.bias_heads; ++h) {
      for (int i = 0; i < queries; ++i) {
        const auto row =
            in.bias.begin() + ((std::size_t(batch) * in.bias_heads + h) * in.query_rows() + first + i) * in.key_length;
        one.inputs.bias.insert(one.inputs.bias.end(), row, row + keys);
      }
    }
  }
  return one;
}

}  // namespace wavejit::tests
