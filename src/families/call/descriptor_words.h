// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The words of a family's problem descriptors as rows, in the order in which they are printed: how each is read, how it
// is printed, what lists of accepted words say of it. From a table of them come a descriptor's text and its parser.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "families/call/failure.h"
#include "families/call/words.h"
#include "families/kernel/names.h"

namespace wavejit::families {

// Nothing: not this row's word. An error: what is wrong with it.
using TakenWord = std::optional<Result<void>>;

template <typename Described>
struct DescriptorWord {
  std::string accepted;      // in lists: "lse", "b<n>", "causal[=<prefix>]"; empty: no list has it
  std::string missing = {};  // what a line without it lacks; empty: it may be left out
  std::function<TakenWord(Described&, const Word&)> take;
  std::function<std::string(const Described&)> text = {};  // empty: it is not printed
};
template <typename Described>
using DescriptorWords = std::vector<DescriptorWord<Described>>;

// ---- Kinds of rows. `field` returns the row's field of a described problem.

// A bool: the word is there, or it is not.
template <typename Described, typename Field>
DescriptorWord<Described> flag_word(const std::string& word, Field field) {
  return {.accepted = word,
          .take = [word, field](Described& described, const Word& given) -> TakenWord {
            if (given.text != word) return std::nullopt;
            field(described) = true;
            return Result<void>();
          },
          .text = [word, field](const Described& described) { return field(described) ? word : std::string(); }};
}

// "b2": a letter and a number.
Result<std::int64_t> sized_number(const Word& word, std::string_view digits, std::int64_t least, std::int64_t most);
// What stands behind the letter, if a digit does.
std::optional<std::string_view> behind_letter(const Word& word, char letter);

template <typename Described, typename Field>
DescriptorWord<Described> number_word(char letter, const std::string& missing, std::int64_t least, std::int64_t most,
                                      Field field) {
  return {.accepted = std::string(1, letter) + "<n>",
          .missing = missing,
          .take = [letter, least, most, field](Described& described, const Word& word) -> TakenWord {
            const auto digits = behind_letter(word, letter);
            if (!digits) return std::nullopt;
            const auto value = sized_number(word, *digits, least, most);
            if (!value) return std::unexpected(value.error());
            field(described) = static_cast<std::remove_cvref_t<decltype(field(described))>>(*value);
            return Result<void>();
          },
          .text = [letter, field](const Described& described) { return letter + std::to_string(field(described)); }};
}

// "h8" for both, "h8/2".
Result<std::pair<std::int64_t, std::int64_t>> sized_pair(const Word& word, std::string_view digits, std::int64_t most);
std::string text_of_pair(char letter, std::int64_t first, std::int64_t second);

template <typename Described, typename First, typename Second>
DescriptorWord<Described> pair_word(char letter, const std::string& missing, std::int64_t most, First first,
                                    Second second) {
  return {
      .accepted = std::string(1, letter) + "<n>[/<n>]",
      .missing = missing,
      .take = [letter, most, first, second](Described& described, const Word& word) -> TakenWord {
        const auto digits = behind_letter(word, letter);
        if (!digits) return std::nullopt;
        const auto value = sized_pair(word, *digits, most);
        if (!value) return std::unexpected(value.error());
        first(described) = static_cast<std::remove_cvref_t<decltype(first(described))>>(value->first);
        second(described) = static_cast<std::remove_cvref_t<decltype(second(described))>>(value->second);
        return Result<void>();
      },
      .text = [letter, first, second](
                  const Described& described) { return text_of_pair(letter, first(described), second(described)); }};
}

// "bf16": a word that is a name. `accepted`: as lists have it.
template <typename Described, typename Enum, std::size_t count, typename Field>
DescriptorWord<Described> name_word(const std::string& accepted, const std::string& missing,
                                    const Names<Enum, count>& names, Field field) {
  return {
      .accepted = accepted,
      .missing = missing,
      .take = [&names, field](Described& described, const Word& word) -> TakenWord {
        const auto value = value_in(names, word.text);
        if (!value) return std::nullopt;
        field(described) = *value;
        return Result<void>();
      },
      .text = [&names, field](const Described& described) { return std::string(name_in(names, field(described))); }};
}

// What stands behind "key=".
std::optional<std::string_view> behind_key(const Word& word, std::string_view key);

// "scale=0.5": `take` reads what stands behind the key, `print` gives it back; empty: not said.
template <typename Described, typename Take, typename Print>
DescriptorWord<Described> value_word(const std::string& key, std::string_view accepted, Take take, Print print) {
  return {.accepted = key + "=" + std::string(accepted),
          .take = [key, take](Described& described, const Word& word) -> TakenWord {
            const auto value = behind_key(word, key);
            if (!value) return std::nullopt;
            return take(described, word, *value);
          },
          .text =
              [key, print](const Described& described) {
                const std::string value = print(described);
                return value.empty() ? std::string() : key + "=" + value;
              }};
}

// ---- What comes of a table

// The words of a line behind its first, which is the family's name, or why there are none.
Result<std::vector<Word>> words_behind(std::string_view line, std::string_view family);

template <typename Described>
std::string accepted_words(const DescriptorWords<Described>& words) {
  std::string list;
  for (const auto& word : words)
    if (!word.accepted.empty()) list += (list.empty() ? "" : ", ") + word.accepted;
  return list;
}

// Words may come in any order, each once. What they say together, the family checks.
template <typename Described>
Result<Described> read_words(std::string_view line, std::string_view family, const DescriptorWords<Described>& words) {
  const auto given = words_behind(line, family);
  if (!given) return std::unexpected(given.error());
  Described described;
  std::vector<bool> seen(words.size());
  for (const Word& word : *given) {
    TakenWord taken;
    std::size_t row = 0;
    for (; row < words.size(); ++row) {
      taken = words[row].take(described, word);
      if (taken) break;
    }
    if (!taken) return unknown_word(word, family, accepted_words(words));
    if (!*taken) return std::unexpected(std::move(taken->error()));
    if (seen[row]) return wrong(word, "says again what an earlier word said; accepted: each once");
    seen[row] = true;
  }
  for (std::size_t row = 0; row < words.size(); ++row)
    if (!seen[row] && !words[row].missing.empty())
      return fail(WAVEJIT_INVALID_ARGUMENT, "descriptor: a word is missing; accepted: " + words[row].missing);
  return described;
}

// "descriptor: <what>; accepted: <accepted>": words that do not go together.
[[gnu::cold]] inline std::unexpected<Failure> refuse_line(const std::string& what, const std::string& accepted) {
  return fail(WAVEJIT_INVALID_ARGUMENT, "descriptor: " + what + "; accepted: " + accepted);
}

// A line, and what its words must say together or what follows from them: `finish(described)`.
template <typename Described, typename Finish>
Result<Described> read_line(std::string_view line, std::string_view family, const DescriptorWords<Described>& words,
                            Finish finish) {
  auto described = read_words(line, family, words);
  if (!described) return described;
  if (Result<void> good = finish(*described); !good) return std::unexpected(std::move(good.error()));
  return described;
}

template <typename Described>
std::string line_of(std::string_view family, const DescriptorWords<Described>& words, const Described& described) {
  std::string line(family);
  for (const auto& word : words) {
    if (!word.text) continue;
    if (const std::string text = word.text(described); !text.empty()) line += " " + text;
  }
  return line;
}

// The lines of a family: `make_words()` are their words, `finish` what those must say together. The table is made once.
template <typename Described, auto make_words, auto finish>
struct LinesOf {
  static const DescriptorWords<Described>& words() {
    static const DescriptorWords<Described> all = make_words();
    return all;
  }
  static Result<Described> read(std::string_view family, std::string_view line) {
    return read_line(line, family, words(), finish);
  }
  static std::string text(std::string_view family, const Described& described) {
    return line_of(family, words(), described);
  }
};

}  // namespace wavejit::families
