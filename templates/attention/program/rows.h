// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which rows are looked at: rows of one query head of one sequence, and lists of them.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <vector>

namespace wavejit::attention::program {

struct HeadOfSequence {
  std::int64_t sequence = 0;
  std::int64_t head = 0;
  auto operator<=>(const HeadOfSequence&) const = default;
};

// Some rows of one sequence and kv head, called as a problem of their own on the same memory.
struct View {
  std::int64_t sequence = 0;
  std::int64_t kv_head = 0;
  std::int64_t first_row = 0;
  std::int64_t rows = 0;
};

// Row numbers within their sequences, ascending.
using Rows = std::map<HeadOfSequence, std::vector<std::int64_t>>;

inline std::int64_t count_of(const Rows& rows) {
  std::int64_t count = 0;
  for (const auto& [head, numbers] : rows) count += static_cast<std::int64_t>(numbers.size());
  return count;
}

}  // namespace wavejit::attention::program
