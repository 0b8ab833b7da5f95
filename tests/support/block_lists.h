// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Lists of key blocks for tests: which blocks the rows of a block see, and the arrays in which a call gives them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

namespace wavejit::tests {

// What rows see. A list names each block once.
struct BlockLists {
  int rows = 64;  // of a block
  int keys = 64;
  int batches = 1;
  int heads = 1;
  int row_blocks = 1;
  // [batches][heads][row blocks]
  std::vector<std::vector<std::int32_t>> masked;
  std::vector<std::vector<std::int32_t>> whole;

  std::size_t list_of(int batch, int head, int row, int query_heads) const {
    const int of_batch = batches == 1 ? 0 : batch;
    return (std::size_t(of_batch) * heads + head * heads / query_heads) * row_blocks + row / rows;
  }
  static bool names(const std::vector<std::int32_t>& list, int block) { return std::ranges::contains(list, block); }
};

// Each block is in a list with probability `density`; of these blocks a share of `whole` is marked as whole.
inline BlockLists random_lists(int rows, int keys, int batches, int heads, int query_length, int key_length,
                               double density, double whole, std::uint64_t seed) {
  BlockLists lists{.rows = rows,
                   .keys = keys,
                   .batches = batches,
                   .heads = heads,
                   .row_blocks = (query_length + rows - 1) / rows,
                   .masked = {},
                   .whole = {}};
  std::mt19937_64 generator(seed);
  const auto chance = [&](double of) { return double(generator() >> 11) * 0x1p-53 < of; };
  for (int list = 0; list < batches * heads * lists.row_blocks; ++list) {
    auto& masked = lists.masked.emplace_back();
    auto& full = lists.whole.emplace_back();
    for (int block = 0; block * keys < key_length; ++block)
      if (chance(density)) (chance(whole) ? full : masked).push_back(block);
  }
  return lists;
}
inline BlockLists full_lists(int rows, int keys, int query_length, int key_length) {
  return random_lists(rows, keys, 1, 1, query_length, key_length, 2, 0, 0);
}

// How a call gives them.
struct ListForm {
  bool ragged = false;  // starts in place of counts
  bool counts = true;   // false: −1 stands behind a list's last entry
  bool noise = false;   // entries twice, −1, outside the keys, in no order; and behind those that count
  bool alike = false;
  bool lies = false;  // counts and starts below 0 and beyond all entries
};

// One kind of list as arrays of a call.
struct ListArrays {
  std::vector<std::int32_t> counts, starts, indices;
  std::int64_t capacity = 0;
};
inline ListArrays arrays_of(const std::vector<std::vector<std::int32_t>>& lists, const ListForm& form,
                            std::uint64_t seed) {
  ListArrays arrays;
  std::mt19937_64 generator(seed);
  std::vector<std::vector<std::int32_t>> told = lists;
  std::size_t longest = 1;
  for (auto& list : told) {
    if (form.noise) {
      const std::size_t count = list.size();
      for (std::size_t i = 0; i < count; i += 2) list.push_back(list[i]);
      list.insert(list.end(), {-1, -7, 1 << 20, 0x7FFFFFFF, INT32_MIN});
      std::ranges::shuffle(list, generator);
    }
    longest = std::max(longest, list.size());
  }
  if (form.ragged) {
    arrays.starts.push_back(0);
    for (const auto& list : told) {
      arrays.indices.insert(arrays.indices.end(), list.begin(), list.end());
      arrays.starts.push_back(std::int32_t(arrays.indices.size()));
    }
    arrays.capacity = std::int64_t(arrays.indices.size());
    if (form.lies) {
      arrays.starts.front() = -5;
      std::fill(arrays.starts.begin() + std::ptrdiff_t(arrays.starts.size() / 2), arrays.starts.end(), INT32_MAX);
    }
    if (arrays.indices.empty()) arrays.indices.push_back(0);
    return arrays;
  }
  arrays.capacity = std::int64_t(longest) + (form.noise ? 3 : 0);
  for (const auto& list : told) {
    if (form.counts) arrays.counts.push_back(std::int32_t(list.size()));
    arrays.indices.insert(arrays.indices.end(), list.begin(), list.end());
    if (form.lies && &list == &told.front()) arrays.counts.back() = INT32_MAX;
    if (form.lies && &list == &told.back()) arrays.counts.back() = -3;
    // Blocks that nobody names.
    arrays.indices.insert(arrays.indices.end(), std::size_t(arrays.capacity) - list.size(), form.counts ? 0 : -1);
  }
  return arrays;
}

}  // namespace wavejit::tests
