// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "families/call/nearest_word.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace wavejit::families {
namespace {

// Far more than any word has.
constexpr std::size_t longest_word = 64;

// Letters put in, left out, changed, or swapped with their neighbour, a row of the table at a time.
std::size_t mistakes_between(std::string_view given, std::string_view word) {
  std::vector<std::size_t> before(word.size() + 1);
  std::vector<std::size_t> last(word.size() + 1);
  std::vector<std::size_t> row(word.size() + 1);
  for (std::size_t j = 0; j <= word.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= given.size(); ++i) {
    before = std::exchange(last, row);
    row[0] = i;
    for (std::size_t j = 1; j <= word.size(); ++j) {
      const std::size_t changed = last[j - 1] + (given[i - 1] == word[j - 1] ? 0U : 1U);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, changed});
      const bool swapped = i > 1 && j > 1 && given[i - 1] == word[j - 2] && given[i - 2] == word[j - 1];
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row.back();
}

struct Nearest {
  std::string_view word;
  std::size_t mistakes = longest_word;

  void take(std::string_view given, std::string_view other) {
    // "h<n>" is no word that letters are missing of.
    constexpr std::size_t shortest_word = 3;
    if (given.size() < shortest_word || other.size() < shortest_word) return;
    const std::size_t count = mistakes_between(given, other);
    if (count > std::max(given.size(), other.size()) / 3 || count >= mistakes) return;
    word = other;
    mistakes = count;
  }
};

// "causal" of "causal[=<prefix>]", "e4m3" of "e4m3".
std::string_view without_places(std::string_view word) { return word.substr(0, word.find_first_of("[<(|: ")); }
// "softcap=" of "softcap=30"; nothing of other words.
std::string_view key_of(std::string_view word) {
  const std::size_t equals = word.find('=');
  return equals == std::string_view::npos ? std::string_view() : word.substr(0, equals + 1);
}

}  // namespace

std::string did_you_mean(std::string_view given, std::span<const std::string_view> words) {
  if (given.size() > longest_word) return {};
  Nearest nearest;
  for (const std::string_view word : words) nearest.take(given, without_places(word));
  const std::string_view key = key_of(given);
  if (nearest.word.empty() && !key.empty())
    for (const std::string_view word : words)
      if (key_of(word) != key) nearest.take(key, key_of(word));
  return nearest.word.empty() ? std::string() : " (did you mean '" + std::string(nearest.word) + "'?)";
}

std::string did_you_mean(std::string_view given, std::string_view list) {
  std::vector<std::string_view> words;
  while (!list.empty()) {
    const std::size_t end = std::min(list.find(", "), list.size());
    words.push_back(list.substr(0, end));
    list.remove_prefix(std::min(end + 2, list.size()));
  }
  return did_you_mean(given, words);
}

}  // namespace wavejit::families
