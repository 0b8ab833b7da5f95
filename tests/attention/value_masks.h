// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Bool masks that rows name.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

#include "attention/bool_masks.h"

namespace wavejit::tests {

inline Shows mask_called(const AttentionCase& which, const std::string& name, std::uint64_t seed) {
  const int rows = which.inputs.query_rows();
  const int keys = which.inputs.key_length;
  if (name == "blocks") return random_blocks(which, seed);
  if (name == "tree") return tree_of({-1, 0, 0, 1, 1, 2, 3, 3, 5}, keys);
  // Two of three keys of a row, others of each.
  if (name == "mixed")
    return [](int, int, int row, int key) { return ((row * 7) + (key * 13) + (row * key)) % 3 != 0; };
  // All but the last key of one row.
  if (name == "one_hidden") {
    const auto hidden = static_cast<int>(seed % static_cast<std::uint64_t>(rows));
    return [hidden, keys](int, int, int row, int key) { return row != hidden || key + 1 != keys; };
  }
  // Nobody sees the second chunk of 1,024 keys.
  if (name == "chunk_hidden")
    return [rows, blocks = random_blocks(which, seed)](int batch, int head, int row, int key) {
      if (key / 1024 == 1) return false;
      return rows < 3 ? (key * 7) % 3 != 0 : blocks(batch, head, row, key);
    };
  // What a diagonal that ends with the last key shows, and chunks of 90 keys beside it; everything.
  if (name == "diagonal" || name == "chunks")
    return [beyond = keys - rows, chunks = name == "chunks"](int, int, int row, int key) {
      return key <= row + beyond && (!chunks || key / 90 == (row + beyond) / 90);
    };
  if (name == "open") return [](int, int, int, int) { return true; };
  // Each sequence has other hidden tiles.
  if (name == "by_sequence")
    return [](int batch, int, int row, int key) {
      return key / 64 % 5 != batch && ((key * 31) + (row * 17) + batch) % 7 != 0;
    };
  throw std::runtime_error("no mask is called '" + name + "'");
}

}  // namespace wavejit::tests
