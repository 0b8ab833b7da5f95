// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Bool masks of cases.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "attention/kinds_of_blocks.h"
#include "attention/modified.h"

namespace wavejit::tests {

using Shows = std::function<bool(int batch, int head, int row, int key)>;

inline void set_mask(AttentionCase& which, int batches, int heads, const Shows& shows) {
  AttentionInputs& in = which.inputs;
  in.shown_batches = batches;
  in.shown_heads = heads;
  in.shown.clear();
  for (int b = 0; b < batches; ++b)
    for (int h = 0; h < heads; ++h)
      for (int i = 0; i < in.query_rows(); ++i)
        for (int j = 0; j < in.key_length; ++j)
          in.shown.push_back(shows(b, h, i, j) ? static_cast<std::uint8_t>(1 + ((i + j) % 255)) : std::uint8_t{0});
}

// A third of the blocks of rows and tiles of keys is hidden, a third open, the rest mixed; the last rows see nothing.
inline Shows random_blocks(const AttentionCase& which, std::uint64_t seed) {
  const int rows = which.inputs.query_rows();
  return [rows, seed, kinds = KindsOfBlocks(3)](int batch, int head, int row, int key) mutable {
    if (row >= rows - 2) return false;
    const std::uint64_t kind =
        kinds.of(seed + (1000003ULL * batch) + (7919ULL * head) + (131ULL * (row / 64)) + (key / 64));
    return kind == 1 || (kind == 2 && ((row * 31) + (key * 17) + (row * key)) % 5 < 2);
  };
}

// A tree of guesses behind a context: each row sees the context, itself and those it comes from.
inline Shows tree_of(std::vector<int> parent, int keys) {
  const int context = keys - static_cast<int>(parent.size());
  return [parent = std::move(parent), context](int, int, int row, int key) {
    if (key < context) return true;
    for (int at = row; at >= 0; at = parent[std::size_t(at)])
      if (key == context + at) return true;
    return false;
  };
}

inline void expect_same_bits(const AttentionOutput& output, const AttentionOutput& wanted) {
  EXPECT_TRUE(output.o == wanted.o) << output.kernel_spec << " beside " << wanted.kernel_spec;
  EXPECT_TRUE(bits_of(output.lse) == bits_of(wanted.lse)) << output.kernel_spec << " beside " << wanted.kernel_spec;
}

}  // namespace wavejit::tests
