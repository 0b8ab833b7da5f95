// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention/program/key_lists.h"

#include <algorithm>
#include <charconv>
#include <random>

namespace wavejit::attention::program {

namespace {

std::int64_t number_at(std::string_view word) {
  std::int64_t number = 0;
  std::from_chars(word.data(), word.data() + word.size(), number);
  return number;
}

}  // namespace

ListWords list_words(const std::string& text) {
  const std::string_view word = word_behind(text, " top_k=");
  return {.top_k = number_at(word),
          .slots = word.contains(":slots"),
          .heads = word.contains(":heads"),
          .mixed = word.contains(":mixed")};
}

ListWords second_list_words(const std::string& text) {
  ListWords words = list_words(text);
  words.top_k = number_at(word_behind(text, " second_top_k="));
  return words;
}

std::vector<std::int64_t> KeyLists::times(std::size_t token, std::int64_t kv_head, std::int64_t keys) const {
  std::vector<std::int64_t> named(static_cast<std::size_t>(keys));
  const std::size_t list =
      (token * static_cast<std::size_t>(heads)) + static_cast<std::size_t>(heads > 1 ? kv_head : 0);
  for (const std::int64_t key : seen[list]) ++named[static_cast<std::size_t>(key)];
  return named;
}

ListedRow listed_row(const ListWords& words, std::uint64_t seed, std::int64_t seen_keys, std::int64_t all_keys) {
  std::mt19937_64 random(seed);
  const auto below = [&](std::int64_t bound) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(std::max<std::int64_t>(bound, 1)));
  };
  ListedRow row = {.entries = {}, .count = words.top_k};
  if (!words.mixed) {
    // Each of the keys that are left is taken with the chance that fills the list.
    std::int64_t wanted = std::min(words.top_k, seen_keys);
    for (std::int64_t key = 0; key < seen_keys && wanted > 0; ++key)
      if (below(seen_keys - key) < wanted) {
        row.entries.push_back(key);
        --wanted;
      }
    row.entries.resize(static_cast<std::size_t>(words.top_k), -1);
    return row;
  }
  row.count = below(4) == 0 ? below(words.top_k + 1) : words.top_k;
  for (std::int64_t at = 0; at < words.top_k; ++at) {
    constexpr std::int64_t kinds = 16;
    switch (below(kinds)) {
      case 0:
      case 1:
        row.entries.push_back(-1);
        break;
      case 2:
        row.entries.push_back(-1 - below(1000000));
        break;
      case 3:
        row.entries.push_back(seen_keys + below(all_keys));  // what the row does not see, or nothing does
        break;
      case 4:
        row.entries.push_back(at == 0 ? 0 : row.entries.back());
        break;
      default:
        row.entries.push_back(below(seen_keys));
    }
  }
  return row;
}

namespace {

// `turned`: slots from the last to the first.
KeyLists make_lists(const Experiment& experiment, const ListWords& words, std::uint64_t seed, const KeySlots& slots,
                    bool turned) {
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
        std::int64_t entry = key;
        if (words.slots && is_key)
          entry = turned ? slots.count() - 1 - slots.of(number, key) : slots.of(number, key);
        else if (words.slots && key >= 0)
          entry = slots.count() + key;
        lists.indices[(list * static_cast<std::size_t>(words.top_k)) + at] = static_cast<std::int32_t>(entry);
      }
      if (words.mixed) lists.counts[list] = static_cast<std::int32_t>(listed.count);
    }
    ++number;
  }
  return lists;
}

}  // namespace

BothLists both_lists_of(const Experiment& experiment) {
  constexpr std::uint64_t further = 1'000'003;  // lists of their own
  const ListWords words = list_words(experiment.text);
  if (words.top_k == 0) return {};
  const KeySlots slots(experiment);
  return {.first = make_lists(experiment, words, experiment.seed + 7, slots, false),
          .second = make_lists(experiment, second_list_words(experiment.text), experiment.seed + further, slots, true)};
}

KeyLists joined_lists_of(const Experiment& experiment) {
  auto [lists, second] = both_lists_of(experiment);
  for (std::size_t list = 0; list < second.seen.size(); ++list)
    lists.seen[list].insert(lists.seen[list].end(), second.seen[list].begin(), second.seen[list].end());
  return lists;
}

}  // namespace wavejit::attention::program
