// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Some rows of some heads of a call's tensor, on the same memory: what a call of a part of a batch is made with.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "templates/attention/call/data_type.h"
#include "wavejit/wavejit.h"

namespace wavejit::attention::program {

struct Stretch {
  std::int64_t first = 0;
  std::int64_t count = 1;
};

// What all batches, rows or heads share, along a dimension of 1, stays as it is. So does a tensor that is not there.
inline void cut(wavejit_tensor& tensor, int dimension, const Stretch& kept) {
  if (tensor.data == nullptr || (tensor.sizes[dimension] == 1 && kept.count > 0)) return;
  tensor.data = static_cast<std::byte*>(tensor.data) +
                (kept.first * tensor.strides[dimension] * static_cast<std::int64_t>(element_bytes_of(tensor)));
  tensor.sizes[dimension] = kept.count;
}

// The dimensions of rows and of heads, behind that of the batch.
struct RowsAndHeads {
  int rows = 1;
  int heads = 2;
};
inline constexpr RowsAndHeads rows_first = {.rows = 1, .heads = 2};
inline constexpr RowsAndHeads heads_first = {.rows = 2, .heads = 1};

// Tokens of one batch, which are counted through all of them.
inline void cut(wavejit_tensor& tensor, const RowsAndHeads& order, const Stretch& tokens, const Stretch& heads) {
  const std::int64_t length = std::max<std::int64_t>(tensor.sizes[order.rows], 1);
  cut(tensor, 0, {.first = tokens.first / length});
  cut(tensor, order.rows, {.first = tokens.first % length, .count = tokens.count});
  cut(tensor, order.heads, heads);
}

}  // namespace wavejit::attention::program
