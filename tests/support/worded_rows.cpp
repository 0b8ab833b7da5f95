// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/worded_rows.h"

#include <algorithm>
#include <cctype>
#include <fstream>
#include <ostream>
#include <regex>
#include <set>
#include <sstream>
#include <stdexcept>
#include <utility>

namespace wavejit::tests {
namespace {

// One line for each choice of the alternatives.
std::vector<std::string> choices_of(const std::string& line) {
  const std::size_t open = line.find('(');
  if (open == std::string::npos) return {line};
  const std::size_t close = line.find(')', open);
  if (close == std::string::npos) throw std::runtime_error("a parenthesis is not closed");
  std::string alternatives = line.substr(open + 1, close - open - 1);
  if (alternatives.ends_with('|')) alternatives += ' ';  // getline makes no part of what is empty
  std::vector<std::string> lines;
  for (const std::string& one : parts_of(alternatives, '|'))
    for (const std::string& rest : choices_of(line.substr(close + 1))) {
      std::string chosen = line.substr(0, open);
      chosen += one;
      chosen += rest;
      lines.push_back(std::move(chosen));
    }
  return lines;
}

std::map<std::string, std::string> words_of(const std::string& text, const RowGrammar& grammar) {
  std::map<std::string, std::string> words;
  std::istringstream stream(text);
  for (std::string word; stream >> word;) {
    const std::string key = word.substr(0, word.find('='));
    if (key != "on" && !std::ranges::contains(grammar.words, key))
      throw std::runtime_error("'" + key + "' is no word of the tests");
    words[key] = key == word ? "" : word.substr(key.size() + 1);
  }
  return words;
}

WordedRow row_of(const std::string& line, const RowGrammar& grammar) {
  WordedRow row;
  const std::string ended = line + ' ';  // a colon may be the last
  const std::size_t colon = ended.find(" : ");
  row.descriptor = line.substr(0, colon);
  if (colon != std::string::npos) row.words = words_of(ended.substr(colon + 3), grammar);
  return row;
}

// What the section says of all its rows. Of what both say, `kernel` is both, and the row's own word is the word.
void add_words(WordedRow& row, const std::map<std::string, std::string>& of_section) {
  for (const auto& [key, value] : of_section) {
    const auto [place, is_new] = row.words.emplace(key, value);
    if (!is_new && key == "kernel") place->second += ',' + value;
  }
}

// gfx942 has floats of 8 bits of its own.
std::string descriptor_on(const std::string& target, const std::string& descriptor) {
  static const std::regex of_eight_bits("(^| |cache=)(e[45]m[23])(?= |$)");
  return target == "gfx942" ? std::regex_replace(descriptor, of_eight_bits, "$1$2_fnuz") : descriptor;
}

}  // namespace

void PrintTo(const WordedRow& row, std::ostream* out) { *out << row.target << ' ' << row.descriptor; }

std::vector<std::string> parts_of(const std::string& text, char at) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, at);) parts.push_back(part);
  return parts;
}

std::vector<std::int32_t> numbers_of(const std::string& text) {
  std::vector<std::int32_t> numbers;
  for (const std::string& part : parts_of(text)) numbers.push_back(std::stoi(part));
  return numbers;
}

std::string plain(std::string text) {
  std::erase_if(text, [](unsigned char c) { return std::isalnum(c) == 0; });
  return text;
}

std::uint64_t seed_of(const std::string& text) {
  std::uint64_t seed = 0;
  for (const char letter : text) seed = (seed * 131) + static_cast<unsigned char>(letter);
  return seed % 1'000'000;
}

std::string name_of_words(const WordedRow& row) {
  std::string name = row.target + '_' + row.section;
  std::istringstream stream(row.descriptor);
  for (std::string word; stream >> word;) name += '_' + plain(word);
  for (const auto& [key, value] : row.words)
    if (key != "on") name += '_' + plain(key + value);
  return name;
}

std::vector<WordedRow> worded_rows_of(const std::string& text, const RowGrammar& grammar) {
  std::vector<WordedRow> rows;
  std::map<std::string, int> names;
  std::set<std::string> lines;
  std::string section;
  std::map<std::string, std::string> of_section;
  int number = 0;
  for (const std::string& whole : parts_of(text, '\n')) {
    ++number;
    const std::string line = whole.substr(0, whole.find('#'));
    if (line.find_first_not_of(' ') == std::string::npos) continue;
    try {
      if (line.starts_with('[')) {
        const std::size_t end = line.find(']');
        section = line.substr(1, end - 1);
        of_section = words_of(line.substr(end + 1), grammar);
        continue;
      }
      for (const std::string& choice : choices_of(line)) {
        if (!lines.insert(section + choice).second) throw std::runtime_error("the row is there twice");
        WordedRow own = row_of(choice, grammar);
        own.section = section;
        own.section_has_words = !of_section.empty();
        WordedRow row = own;
        add_words(row, of_section);
        for (const std::string& target : parts_of(row.word("on", grammar.targets))) {
          own.target = row.target = target;
          row.name = grammar.name(own);
          // Rows that differ in values alone.
          if (const int count = ++names[row.name]; count > 1) row.name += "_row" + std::to_string(count);
          rows.push_back(row);
          rows.back().descriptor = descriptor_on(target, row.descriptor);
        }
      }
    } catch (const std::runtime_error& wrong) {
      throw std::runtime_error("line " + std::to_string(number) + " (" + line + "): " + wrong.what());
    }
  }
  return rows;
}

std::vector<WordedRow> worded_rows(const std::string& file, const RowGrammar& grammar) {
  std::ifstream stream(std::string(WAVEJIT_TREE) + "/tests/" + file);
  std::stringstream text;
  text << stream.rdbuf();
  if (!stream) throw std::runtime_error("tests/" + file + " cannot be read");
  return worded_rows_of(text.str(), grammar);
}

}  // namespace wavejit::tests
