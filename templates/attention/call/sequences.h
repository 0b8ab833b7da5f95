// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which sequences a call has and how long they are: dense, packed, or in pages, as far as the host is told.
#pragma once

#include <cstdint>

#include "families/call/failure.h"
#include "wavejit/wavejit.h"

namespace wavejit::attention {

// What the call's tensors must measure, once packed lengths are known.
struct Extents {
  std::int64_t sequences = 0;
  std::int64_t query_length = 0;  // the longest
  std::int64_t key_length = 0;
  const char* sequences_from = nullptr;  // the field that says so
};

// Those of a checked problem.
template <typename Problem>
Extents extents_of(const Problem& problem) {
  return {.sequences = problem.batch, .query_length = problem.query_length, .key_length = problem.key_length};
}

// TensorRules::longest of a tensor with these starts, or none.
constexpr std::int64_t longest_of_packed(const Extents& extents, const std::int32_t* starts, bool of_keys) {
  if (starts == nullptr) return -1;
  return of_keys ? extents.key_length : extents.query_length;
}

// Needs q and k with sizes in range.
// `extents` in place: hot, and a processor waits for what is read back wider than it was written.
families::Result<void> check_sequences(const wavejit_tensor& q, const wavejit_tensor& k, const wavejit_sequences& call,
                                       const wavejit_pages& pages, Extents& extents);
// What a family without pages hands over.
inline constexpr wavejit_pages no_pages{};

// Whether sequences may have fewer keys than the longest, as far as the host was told: `lengths` of their own that only
// the device knows, unless all of them together may have as many as `total` (0: nobody said).
constexpr bool may_be_uneven(bool lengths, std::int64_t sequences, std::int64_t key_length, std::int64_t total) {
  return sequences > 1 && lengths && (total == 0 || total / sequences < key_length);
}

}  // namespace wavejit::attention
