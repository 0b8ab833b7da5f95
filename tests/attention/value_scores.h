// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Q and K that rows name: scores of which online softmax may make something that they are not.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <stdexcept>
#include <string>

#include "support/attention_run.h"

namespace wavejit::tests {

// Writes over normal numbers. `name` and the number behind its colon.
inline void change_scores(AttentionCase& which, const std::string& said) {
  AttentionInputs& in = which.inputs;
  const std::string name = said.substr(0, said.find(':'));
  const double number = name == said ? 0 : std::stod(said.substr(name.size() + 1));
  const auto row_of = [](std::vector<float>& rows, int row, int heads, int dims) {
    return rows.begin() + static_cast<std::ptrdiff_t>(row) * heads * dims;
  };
  // Scores apart from any noise, in log2 units: q and k are zero but for a few columns of the first head.
  const auto clear = [&] {
    std::ranges::fill(in.q, 0.0F);
    std::ranges::fill(in.k, 0.0F);
    in.scale = static_cast<float>(std::log(2.0));
  };
  const auto q_at = [&](int row, int column) -> float& {
    return row_of(in.q, row, in.query_heads, in.head_dim)[column];
  };
  const auto k_at = [&](int key, int column) -> float& { return row_of(in.k, key, in.kv_heads, in.head_dim)[column]; };
  // Multiplies keys, by their numbers.
  const auto scale_keys = [&](auto factor) {
    for (int key = 0; key < in.key_rows(); ++key)
      for (auto x = row_of(in.k, key, in.kv_heads, in.head_dim); x < row_of(in.k, key + 1, in.kv_heads, in.head_dim);
           ++x)
        *x = from_storage(which.storage, to_storage(which.storage, *x * factor(key)));
  };
  if (name == "jump") {
    // One row of a wave sees one key with a score far above its maximum, the others nothing new.
    clear();
    q_at(31, 0) = 1;
    k_at(64, 0) = static_cast<float>(number);
  } else if (name == "old_maximum") {
    // Even rows have their peak late in the first tile, odd rows a jump in the second.
    clear();
    for (int row = 0; row < in.query_rows(); ++row) q_at(row, row % 2) = 1;
    k_at(60, 0) = k_at(100, 1) = 40;
  } else if (name == "growing") {
    // The maximum grows with every tile in every n-th row.
    clear();
    for (int row = 0; row < in.query_rows(); row += static_cast<int>(number)) q_at(row, 0) = 1;
    for (int key = 0; key < in.key_rows(); ++key) k_at(key, 0) = static_cast<float>(key / 64 * 10);
  } else if (name == "limit") {
    // A part of the largest scores that a call may have.
    const double largest = std::ranges::max(attention_reference(in).largest);
    in.scale = static_cast<float>(in.scale * number * 0x1p28 / largest);
  } else if (name == "chunks_apart") {
    scale_keys([](int key) { return std::array{1.0F, 12.0F, 0.0F, 6.0F}[static_cast<std::size_t>(key / 1024 % 4)]; });
  } else if (name == "ascending" || name == "descending") {
    // Maxima rise from tile to tile by more than the threshold, in some rows; or no later tile reaches them.
    const int last = in.key_rows() / 64;
    scale_keys([&](int key) {
      const int tile = key / 64;
      const auto step = static_cast<float>(name == "ascending" ? tile : last + 1 - tile);
      return 0.25F + (0.75F * step) + (tile % 3 == 0 ? 4.0F : 0.0F);
    });
  } else {
    throw std::runtime_error("no scores are called '" + name + "'");
  }
}

}  // namespace wavejit::tests
