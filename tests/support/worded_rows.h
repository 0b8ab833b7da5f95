// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Rows of text that a family's driver of value tests runs: a call in the words of problem descriptors, and what only tests
// say of it behind a colon.
//
//   [Lengths]
//   # what the rows below are for
//   (fp32|fp16) b1 h1 q37 k(1|63|64) lse : gap=7
//
// Parentheses hold alternatives, and a line is a row for each choice, on each target that `on=` names. Words behind
// [Section] are of all its rows. A word that no driver knows is refused with its line.
#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <map>
#include <string>
#include <vector>

namespace wavejit::tests {

struct WordedRow {
  std::string section;
  bool section_has_words = false;
  std::string target;
  std::string descriptor;                    // without the family's name
  std::map<std::string, std::string> words;  // behind the colon, and those of the section
  std::string name;                          // of the test

  bool says(const std::string& word) const { return words.contains(word); }
  std::string word(const std::string& name, const std::string& otherwise = "") const {
    const auto found = words.find(name);
    return found == words.end() ? otherwise : found->second;
  }
  // The value of a word that is a number, or numbers with commas.
  double number(const std::string& name, double otherwise) const {
    return says(name) ? std::stod(word(name)) : otherwise;
  }
};
void PrintTo(const WordedRow& row, std::ostream* out);

struct RowGrammar {
  std::vector<std::string> words;  // behind the colon, beside `on`
  std::string targets = "gfx942,gfx950";
  // Before words of the section are added. Rows of one name get numbers.
  std::function<std::string(const WordedRow&)> name;
};
// The target, the section, and all words: what tests/chosen pairs.
std::string name_of_words(const WordedRow& row);

// Rows of a text, on each of their targets. Throws what is wrong with it, with the line.
std::vector<WordedRow> worded_rows_of(const std::string& text, const RowGrammar& grammar);
// Those of a file of tests/.
std::vector<WordedRow> worded_rows(const std::string& file, const RowGrammar& grammar);

// "a,b" in parts; "3,-1" in numbers; what is no letter or digit left out.
std::vector<std::string> parts_of(const std::string& text, char at = ',');
std::vector<std::int32_t> numbers_of(const std::string& text);
std::string plain(std::string text);
// Follows from the text: it is the same in every run.
std::uint64_t seed_of(const std::string& text);

inline constexpr auto name_in_row = [](const auto& info) { return info.param.name; };

}  // namespace wavejit::tests
