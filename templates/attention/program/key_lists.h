// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Lists of keys, one for each query or for each of its kv heads, from a descriptor's seed ("top_k=2048",
// "top_k=2048:slots:heads:mixed").
//
// Plain ones are what an indexer writes: keys that the query sees, ascending, −1 behind the last. Mixed ones are in no
// order, with −1 and entries outside the keys anywhere, keys named twice, and a count a row; behind it stand numbers
// that would be read if it were not.
//
// A second list ("second_top_k=128" behind it) is one more of the same kind, over a cache that has the same keys in the
// opposite order.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "templates/attention/program/experiment.h"

namespace wavejit::attention::program {

struct KeyLists {
  std::int64_t top_k = 0;  // 0: none
  bool slots = false;
  std::int64_t heads = 1;  // lists of a query
  // As device memory has them.
  std::vector<std::int32_t> indices;  // [token][heads][top_k]
  std::vector<std::int32_t> counts;   // [token][heads]; empty: all entries count
  // What each token's list then names, in its order; no list: empty.
  std::vector<std::vector<std::int64_t>> seen;  // [token · heads + head]

  // How often the keys of a sequence are named.
  std::vector<std::int64_t> times(std::size_t token, std::int64_t kv_head, std::int64_t keys) const;
};

// Slots of the second cache are counted from its end.
struct BothLists {
  KeyLists first, second;
};
BothLists both_lists_of(const Experiment& experiment);
// The first, which see what the second name, too.
KeyLists joined_lists_of(const Experiment& experiment);

// What the words of a line say; the rest is empty.
struct ListWords {
  std::int64_t top_k = 0;
  bool slots = false;
  bool heads = false;
  bool mixed = false;
};
ListWords list_words(const std::string& text);
ListWords second_list_words(const std::string& text);

// The keys of one query by their number, and where the row sees them.
struct ListedRow {
  std::vector<std::int64_t> entries;  // numbers of keys, or what names none
  std::int64_t count = 0;
};
ListedRow listed_row(const ListWords& words, std::uint64_t seed, std::int64_t seen_keys, std::int64_t all_keys);

}  // namespace wavejit::attention::program
