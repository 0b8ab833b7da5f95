// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention/program/key_lists.h"

#include <algorithm>
#include <charconv>
#include <random>

namespace wavejit::attention::program {

namespace {

// What stands behind " key=".
std::string_view behind(const std::string& text, std::string_view key) {
  const std::size_t at = text.find(key);
  if (at == std::string::npos) return {};
  const std::size_t first = at + key.size();
  return std::string_view(text).substr(first, text.find(' ', first) - first);
}

std::int64_t number_at(std::string_view word) {
  std::int64_t number = 0;
  std::from_chars(word.data(), word.data() + word.size(), number);
  return number;
}

}  // namespace

ListWords list_words(const std::string& text) {
  const std::string_view word = behind(text, " top_k=");
  return {.top_k = number_at(word),
          .slots = word.contains(":slots"),
          .heads = word.contains(":heads"),
          .mixed = word.contains(":mixed")};
}

ListWords second_list_words(const std::string& text) {
  ListWords words = list_words(text);
  words.top_k = number_at(behind(text, " second_top_k="));
  return words;
}

std::vector<std::int64_t> KeyLists::times(std::size_t token, std::int64_t kv_head, std::int64_t keys) const {
  std::vector<std::int64_t> named(static_cast<std::size_t>(keys));
  const std::size_t list =
      (token * static_cast<std::size_t>(heads)) + static_cast<std::size_t>(heads > 1 ? kv_head : 0);
  for (const std::int64_t key : seen[list]) ++named[static_cast<std::size_t>(key)];
  return named;
}

KeyLists make_key_lists(const Experiment& experiment) {
  const auto number = [](std::int64_t, std::int64_t key) { return key; };
  KeyLists lists = make_key_lists(experiment, 0, number);
  const KeyLists second = make_second_lists(experiment, 0, number);
  for (std::size_t list = 0; list < second.seen.size(); ++list)
    lists.seen[list].insert(lists.seen[list].end(), second.seen[list].begin(), second.seen[list].end());
  return lists;
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

}  // namespace wavejit::attention::program
