// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "vocabulary/nearest_word.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace wavejit::vocabulary {
namespace {

// Far more letters than any word has: longer text is not compared.
constexpr std::size_t longest_word = 64;
constexpr std::size_t shortest_beginning = 3;
}  // namespace

// A row of the table at a time.
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

std::string_view nearest_word(std::string_view given, std::span<const std::string_view> words) {
  if (given.size() > longest_word) return {};
  std::string_view nearest;
  std::size_t fewest = 0;
  for (const std::string_view word : words) {
    const std::size_t mistakes = mistakes_between(given, word);
    const bool begins = given.size() >= shortest_beginning && word.starts_with(given);
    if (!begins && mistakes > std::max(given.size(), word.size()) / 3) continue;
    if (!nearest.empty() && mistakes >= fewest) continue;
    nearest = word;
    fewest = mistakes;
  }
  return nearest;
}

std::string did_you_mean(std::string_view given, std::span<const std::string_view> words) {
  const std::string_view nearest = nearest_word(given, words);
  return nearest.empty() ? std::string() : " (did you mean '" + std::string(nearest) + "'?)";
}

std::string did_you_mean(std::string_view given, std::span<const std::string> words) {
  return did_you_mean(given, std::vector<std::string_view>(words.begin(), words.end()));
}

std::string meant_or_list(std::string_view given, std::span<const std::string> words, std::string_view place) {
  const std::string meant = did_you_mean(given, words);
  std::string list;
  for (const std::string& word : words) list += (list.empty() ? "" : ", ") + word;
  if (meant.empty() && list.size() <= longest_list) return "; " + list + (words.size() == 1 ? " is" : " are");
  return meant + (place.empty() ? "" : "; " + std::string(place) + " lists all");
}

}  // namespace wavejit::vocabulary
