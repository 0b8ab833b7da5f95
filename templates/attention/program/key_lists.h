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

#include <algorithm>
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

// `slot_of(sequence, key)`: the key's slot in the cache. `slots`: the slots of the whole cache.
template <typename SlotOf>
KeyLists make_key_lists(const Experiment& experiment, std::int64_t slots, SlotOf slot_of);
// The second ones; `slot_of`: in the second cache.
template <typename SlotOf>
KeyLists make_second_lists(const Experiment& experiment, std::int64_t slots, SlotOf slot_of);
// Those of keys of which an entry is the number. What they name, second lists name beside it.
KeyLists make_key_lists(const Experiment& experiment);

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

template <typename SlotOf>
KeyLists make_lists(const Experiment& experiment, const ListWords& words, std::uint64_t seed, std::int64_t slots,
                    SlotOf slot_of) {
  KeyLists lists = {.top_k = words.top_k,
                    .slots = words.slots,
                    .heads = words.heads ? experiment.kv_heads : 1,
                    .indices = {},
                    .counts = {},
                    .seen = {}};
  if (words.top_k == 0) return lists;
  std::int64_t number = 0;
  for (const Sequence& sequence : sequences_of(experiment)) {
    const ScoreRules rules = rules_of(experiment, sequence);
    const auto ends = static_cast<std::size_t>((sequence.first_query + sequence.queries) * lists.heads);
    if (lists.seen.size() < ends) {
      lists.seen.resize(ends);
      lists.indices.resize(ends * static_cast<std::size_t>(words.top_k), -1);
      if (words.mixed) lists.counts.resize(ends);
    }
    for (std::int64_t row = 0; row < sequence.queries * lists.heads; ++row) {
      const auto list = static_cast<std::size_t>((sequence.first_query * lists.heads) + row);
      const std::int64_t sees = std::max<std::int64_t>(visible_keys(rules, row / lists.heads, sequence.keys).end, 0);
      const ListedRow listed = listed_row(words, seed + list, sees, sequence.keys);
      for (std::size_t at = 0; at < listed.entries.size(); ++at) {
        const std::int64_t key = listed.entries[at];
        const bool is_key = key >= 0 && key < sees;
        if (is_key && static_cast<std::int64_t>(at) < listed.count) lists.seen[list].push_back(key);
        const std::int64_t outside = key < 0 ? key : slots + key;
        lists.indices[(list * static_cast<std::size_t>(words.top_k)) + at] =
            static_cast<std::int32_t>(!words.slots ? key
                                      : is_key     ? slot_of(number, key)
                                                   : outside);
      }
      if (words.mixed) lists.counts[list] = static_cast<std::int32_t>(listed.count);
    }
    ++number;
  }
  return lists;
}

template <typename SlotOf>
KeyLists make_key_lists(const Experiment& experiment, std::int64_t slots, SlotOf slot_of) {
  return make_lists(experiment, list_words(experiment.text), experiment.seed + 7, slots, slot_of);
}
template <typename SlotOf>
KeyLists make_second_lists(const Experiment& experiment, std::int64_t slots, SlotOf slot_of) {
  constexpr std::uint64_t further = 1'000'003;  // lists of their own
  return make_lists(experiment, second_list_words(experiment.text), experiment.seed + further, slots, slot_of);
}

}  // namespace wavejit::attention::program
