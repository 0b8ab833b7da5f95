// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/nearest_word.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <vector>

namespace wavejit::tools {

namespace {

// Letters put in, left out, changed, or swapped with their neighbour: the optimal string alignment distance.
std::size_t mistakes_between(std::string_view given, std::string_view word) {
  std::vector<std::vector<std::size_t>> least(given.size() + 1, std::vector<std::size_t>(word.size() + 1));
  for (std::size_t i = 0; i <= given.size(); ++i) {
    for (std::size_t j = 0; j <= word.size(); ++j) {
      if (i == 0 || j == 0) {
        least[i][j] = i + j;
        continue;
      }
      const bool same = given[i - 1] == word[j - 1];
      least[i][j] = std::min({least[i - 1][j] + 1, least[i][j - 1] + 1, least[i - 1][j - 1] + (same ? 0U : 1U)});
      if (i > 1 && j > 1 && given[i - 1] == word[j - 2] && given[i - 2] == word[j - 1])
        least[i][j] = std::min(least[i][j], least[i - 2][j - 2] + 1);
    }
  }
  return least[given.size()][word.size()];
}

}  // namespace

std::string did_you_mean(std::string_view given, std::span<const std::string> words) {
  // Far more than any word has; the table above would be large.
  if (given.size() > 64) return {};
  const std::string* nearest = nullptr;
  std::size_t fewest = 0;
  for (const std::string& word : words) {
    const std::size_t mistakes = mistakes_between(given, word);
    // What begins a word means it, however much is left out: "attention".
    const bool begins = given.size() > 2 && word.starts_with(given);
    if (!begins && mistakes > std::max(given.size(), word.size()) / 3) continue;
    if (nearest != nullptr && mistakes >= fewest) continue;
    nearest = &word;
    fewest = mistakes;
  }
  return nearest == nullptr ? std::string() : fmt::format(" (did you mean '{}'?)", *nearest);
}

}  // namespace wavejit::tools
