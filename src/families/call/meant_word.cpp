// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "families/call/meant_word.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "vocabulary/nearest_word.h"

namespace wavejit::families {
namespace {

// "h<n>" is no word that letters are missing of.
constexpr std::size_t shortest_word = 3;

// "causal" of "causal[=<prefix>]", "e4m3" of "e4m3".
std::string_view without_places(std::string_view word) { return word.substr(0, word.find_first_of("[<(|: ")); }
// "softcap=" of "softcap=30"; nothing of other words.
std::string_view key_of(std::string_view word) {
  const std::size_t equals = word.find('=');
  return equals == std::string_view::npos ? std::string_view() : word.substr(0, equals + 1);
}

}  // namespace

std::string did_you_mean(std::string_view given, std::string_view list) {
  if (given.size() < shortest_word) return {};
  std::vector<std::string_view> words;
  std::vector<std::string_view> keys;
  const auto take = [](std::string_view word, std::vector<std::string_view>& into) {
    if (word.size() >= shortest_word) into.push_back(word);
  };
  const std::string_view given_key = key_of(given);
  while (!list.empty()) {
    const std::size_t end = std::min(list.find(", "), list.size());
    const std::string_view word = list.substr(0, end);
    take(without_places(word), words);
    if (key_of(word) != given_key) take(key_of(word), keys);
    list.remove_prefix(std::min(end + 2, list.size()));
  }
  const std::string nearest = vocabulary::did_you_mean(given, words);
  return nearest.empty() && !given_key.empty() ? vocabulary::did_you_mean(given_key, keys) : nearest;
}

}  // namespace wavejit::families
