// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A drawn batch of queries, each with a list of keys, and what a call of it has in device memory: keys dense or in
// pages, lists of numbers or of slots, in one list or in two over two caches.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "templates/attention/program/list_queries.h"
#include "templates/attention/program/placed_keys.h"
#include "tools/half.h"
#include "tools/invariance/invariance.h"

namespace wavejit::attention_forward::program {

// q [sequence][query][head][dim], k and v [sequence][key][kv head][dim], lists [sequence][query][list][entry].
struct KeyListBatch : attention::program::ListedQueries {
  std::string words;       // of a line
  std::int64_t lists = 1;  // of a query: 1, or the kv heads
  bool causal = false;
  float softcap = 0;
  std::vector<std::uint16_t> q, k, v;
  std::vector<std::int32_t> indices, counts;
  std::vector<std::int32_t> key_lengths;  // empty: all keys count
  std::vector<float> sink;                // or empty

  const std::string& descriptor() const { return words; }
  const attention::program::ListedQueries& listed() const { return *this; }
  std::int64_t keys_of(std::int64_t sequence) const {
    return key_lengths.empty() ? keys : key_lengths[static_cast<std::size_t>(sequence)];
  }
  // Keys that query `row` of the sequence sees are those below.
  std::int64_t seen_by(std::int64_t sequence, std::int64_t row) const {
    return causal ? keys_of(sequence) - queries + row + 1 : keys_of(sequence);
  }
};
KeyListBatch draw_key_lists(const tools::InvarianceRequest& request);

// Keys and values of a cache as it stands, [outer][inner][kv head][dim].
struct KeyListCache : attention::program::PlacedKeys {
  std::vector<std::uint16_t> k, v;

  std::int64_t slots() const { return outer * inner; }
  std::int64_t slot_of(std::int64_t sequence, std::int64_t key) const {
    const auto [of, row] = slot(static_cast<std::size_t>(sequence), key);
    return (of * inner) + row;
  }
};
// page_size 0: dense. Free slots are NaN. `turned`: slots from the last to the first.
KeyListCache cache_of(const KeyListBatch& batch, std::int64_t page_size);
KeyListCache turned(const KeyListBatch& batch, const KeyListCache& cache);

// The lists by slots; what a row does not see has none.
std::vector<std::int32_t> slots_of(const KeyListBatch& batch, const KeyListCache& cache);

}  // namespace wavejit::attention_forward::program
