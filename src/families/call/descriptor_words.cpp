// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "families/call/descriptor_words.h"

namespace wavejit::families {

Result<std::int64_t> sized_number(const Word& word, std::string_view digits, std::int64_t least, std::int64_t most) {
  const auto value = whole_number(digits);
  if (value && *value >= least && *value <= most) return *value;
  const std::string letter(1, word.text.front());
  return wrong(word,
               "is out of range; accepted: " + letter + std::to_string(least) + " to " + letter + std::to_string(most));
}

std::optional<std::string_view> behind_letter(const Word& word, char letter) {
  const std::string_view text = word.text;
  if (text.size() < 2 || text.front() != letter || text[1] < '0' || text[1] > '9') return std::nullopt;
  return text.substr(1);
}

Result<std::pair<std::int64_t, std::int64_t>> sized_pair(const Word& word, std::string_view digits, std::int64_t most) {
  const std::size_t slash = digits.find('/');
  const auto first = sized_number(word, digits.substr(0, slash), 1, most);
  if (!first) return std::unexpected(first.error());
  const auto second = slash == std::string_view::npos ? first : sized_number(word, digits.substr(slash + 1), 1, most);
  if (!second) return std::unexpected(second.error());
  return std::pair{*first, *second};
}

std::string text_of_pair(char letter, std::int64_t first, std::int64_t second) {
  return letter + std::to_string(first) + (second == first ? "" : "/" + std::to_string(second));
}

std::optional<std::string_view> behind_key(const Word& word, std::string_view key) {
  const std::string_view text = word.text;
  if (!text.starts_with(key) || text.size() == key.size() || text[key.size()] != '=') return std::nullopt;
  return text.substr(key.size() + 1);
}

Result<std::vector<Word>> words_behind(std::string_view line, std::string_view family) {
  if (line.size() > max_descriptor_bytes)
    return fail(WAVEJIT_INVALID_ARGUMENT, "descriptor: " + std::to_string(line.size()) + " bytes; accepted: up to " +
                                              std::to_string(max_descriptor_bytes));
  std::vector<Word> words = words_of(line);
  if (words.empty() || words.front().text != family)
    return fail(WAVEJIT_INVALID_ARGUMENT, (words.empty() ? std::string("descriptor: empty") : place(words.front())) +
                                              "; accepted first word: " + std::string(family));
  words.erase(words.begin());
  return words;
}

}  // namespace wavejit::families
