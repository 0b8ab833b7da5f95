// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which rows are looked at: rows of one query head of one sequence, and lists of them.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <vector>

namespace wavejit::attention_forward::program {

struct HeadOfSequence {
  std::int64_t sequence = 0;
  std::int64_t head = 0;
  auto operator<=>(const HeadOfSequence&) const = default;
};

// Row numbers within their sequences, ascending.
using Rows = std::map<HeadOfSequence, std::vector<std::int64_t>>;

inline std::int64_t count_of(const Rows& rows) {
  std::int64_t count = 0;
  for (const auto& [head, numbers] : rows) count += static_cast<std::int64_t>(numbers.size());
  return count;
}

}  // namespace wavejit::attention_forward::program
