// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "families/call/words.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "families/call/meant_word.h"
#include "vocabulary/nearest_word.h"

namespace wavejit::families {

std::vector<Word> words_of(std::string_view text) {
  std::vector<Word> words;
  std::size_t at = 0;
  while (at < text.size()) {
    if (text[at] == ' ' || text[at] == '\t') {
      ++at;
      continue;
    }
    const std::size_t end = std::min(text.find_first_of(" \t", at), text.size());
    words.push_back({text.substr(at, end - at), words.size() + 1, at + 1});
    at = end;
  }
  return words;
}

std::string place(const Word& word) {
  return "descriptor: word " + std::to_string(word.number) + " '" + std::string(word.text) + "' (column " +
         std::to_string(word.column) + ")";
}

std::unexpected<Failure> wrong(const Word& word, std::string_view why) {
  constexpr std::string_view unknown = "is not known";
  constexpr std::string_view list = "; accepted: ";
  if (why.starts_with(unknown) && why.substr(unknown.size()).starts_with(list))
    return fail(WAVEJIT_INVALID_ARGUMENT, place(word) + " " + std::string(unknown) +
                                              did_you_mean(word.text, why.substr(unknown.size() + list.size())) +
                                              std::string(why.substr(unknown.size())));
  return fail(WAVEJIT_INVALID_ARGUMENT, place(word) + " " + std::string(why));
}

std::unexpected<Failure> unknown_word(const Word& word, std::string_view family, const std::string& accepted) {
  constexpr std::string_view help = "help";
  // Two lines of a terminal.
  const std::string of(family);
  if (word.text == help)
    return fail(WAVEJIT_INVALID_ARGUMENT, place(word) + " asks for the words of " + of + "; accepted: " + accepted);
  const std::string meant = did_you_mean(word.text, accepted);
  const bool is_told = meant.empty() && accepted.size() <= vocabulary::longest_list;
  return fail(WAVEJIT_INVALID_ARGUMENT,
              place(word) + " is not known" + meant + "; accepted: " +
                  (is_told ? accepted : "what `wavejit explain \"" + of + " " + std::string(help) + "\"` lists"));
}

std::unexpected<Failure> not_yet(const Word& word, std::string_view accepted) {
  return fail(WAVEJIT_UNSUPPORTED, place(word) + " is not done by this version; accepted: " + std::string(accepted));
}

std::optional<std::int64_t> whole_number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  if (text.front() == '-' || (text.front() == '0' && text.size() > 1)) return std::nullopt;
  return value;
}

std::optional<float> finite_number(std::string_view text) {
  float value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size() || !std::isfinite(value))
    return std::nullopt;
  return value;
}

}  // namespace wavejit::families
