// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attention/value_rows.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <fstream>
#include <map>
#include <ostream>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace wavejit::tests {
namespace {

constexpr std::array known_words = {"on",         "generic_only",  "kernel",  "padded",  "spread",     "bias_spread",
                                    "bias",       "sink",          "prefix",  "in_turn", "list",       "tight",
                                    "dense_keys", "dense_queries", "counted", "total",   "first_keys", "numbers",
                                    "odd",        "q_scales",      "k_scales"};

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, at);) parts.push_back(part);
  return parts;
}

// One line for each choice of the alternatives.
std::vector<std::string> choices_of(const std::string& line) {
  const std::size_t open = line.find('(');
  if (open == std::string::npos) return {line};
  const std::size_t close = line.find(')', open);
  if (close == std::string::npos) throw std::runtime_error("a parenthesis is not closed");
  std::string alternatives = line.substr(open + 1, close - open - 1);
  if (alternatives.ends_with('|')) alternatives += ' ';  // getline makes no part of what is empty
  std::vector<std::string> lines;
  for (const std::string& one : split(alternatives, '|'))
    for (const std::string& rest : choices_of(line.substr(close + 1))) {
      std::string chosen = line.substr(0, open);
      chosen += one;
      chosen += rest;
      lines.push_back(std::move(chosen));
    }
  return lines;
}

// The number behind a letter: "q17". Nothing: another word.
int sized(const std::string& word, char letter) {
  const bool is = word.size() > 1 && word.front() == letter &&
                  std::all_of(word.begin() + 1, word.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
  return is ? std::stoi(word.substr(1)) : -1;
}

std::string plain(std::string text) {
  std::erase_if(text, [](unsigned char c) { return std::isalnum(c) == 0 && c != '_'; });
  return text;
}

// Words that kernels differ in, for the name of the test. Values are left out, but for those that have names.
std::vector<std::string> named_words(const ValueRow& row) {
  std::vector<std::string> words;
  std::istringstream stream(row.descriptor);
  for (std::string word; stream >> word;) {
    const std::string key = word.substr(0, word.find('='));
    const std::string value = key == word ? "" : word.substr(key.size() + 1);
    if (const int queries = sized(word, 'q'); queries >= 0) {
      if (queries <= 16) words.emplace_back(queries == 1 ? "oneQuery" : "fewQueries");
    } else if (word.front() == 'h' && std::isdigit(static_cast<unsigned char>(word[1])) != 0) {
      if (word.contains('/')) words.emplace_back("grouped");
    } else if (sized(word, 'b') >= 0 || sized(word, 'k') >= 0 || key == "q_lengths" || key == "k_lengths") {
      continue;
    } else if (word.front() == 'd' && std::isdigit(static_cast<unsigned char>(word[1])) != 0) {
      std::ranges::replace(word, '/', 'x');
      words.push_back(word);
    } else if (key == "layout") {
      words.push_back(value.substr(0, value.find(':')));
      if (const std::size_t order = value.find(":vectorised"); order != std::string::npos)
        words.push_back(plain(value.substr(order)));
    } else if (key == "o" || key == "q" || key == "launches") {
      words.push_back(key + value);
    } else if (key == "bias_type") {
      words.push_back("bias" + plain(value));
    } else if (key == "cache" || key == "qk") {
      words.push_back((key == "qk" ? key : "") + plain(value));
    } else if (key == "cache_scales") {
      words.push_back("scales" + value);
    } else if (key == "causal" && !value.empty()) {
      words.insert(words.end(), {"causal", "prefix"});
    } else {
      words.push_back(plain(key));
    }
  }
  for (const char* const word : {"padded", "prefix", "first_keys"})
    if (row.says(word)) words.emplace_back(word);
  for (const auto& [word, letter] : {std::pair{"q_scales", 'q'}, {"k_scales", 'k'}})
    if (row.says(word)) words.push_back(letter + row.word(word));
  if (row.says("odd")) words.push_back("odd" + plain(row.word("odd")));
  if (row.says("numbers")) words.push_back("numbers" + row.word("numbers"));
  return words;
}

// Several words of a name are one: '_' stands between words.
std::string joined(const std::vector<std::string>& words) {
  std::string name;
  for (std::string word : words) {
    std::erase(word, '_');
    if (!name.empty()) name += '_';
    name += word;
  }
  return name;
}

std::string name_of(const ValueRow& row) {
  std::vector<std::string> words = named_words(row);
  words.insert(words.begin(), row.target);
  std::istringstream stream(row.descriptor);
  for (std::string word; stream >> word;)
    if (sized(word, 'q') >= 0 || sized(word, 'k') >= 0) words.push_back(word);
  return joined(words);
}

ValueRow row_of(const std::string& line) {
  ValueRow row;
  const std::size_t colon = line.find(" : ");
  row.descriptor = line.substr(0, colon);
  std::istringstream stream(colon == std::string::npos ? std::string() : line.substr(colon + 3));
  for (std::string word; stream >> word;) {
    const std::string key = word.substr(0, word.find('='));
    if (std::ranges::find(known_words, std::string_view(key)) == known_words.end())
      throw std::runtime_error("'" + key + "' is no word of the tests");
    row.words[key] = key == word ? "" : word.substr(key.size() + 1);
  }
  return row;
}

// gfx942 has floats of 8 bits of its own.
std::string descriptor_on(const std::string& target, std::string descriptor) {
  const std::size_t at = descriptor.find(" cache=e");
  if (target == "gfx942" && at != std::string::npos)
    descriptor.insert(std::min(descriptor.find(' ', at + 1), descriptor.size()), "_fnuz");
  return descriptor;
}

}  // namespace

void PrintTo(const ValueRow& row, std::ostream* out) { *out << row.target << ' ' << row.descriptor; }

std::vector<ValueRow> value_rows_of(const std::string& text) {
  std::vector<ValueRow> rows;
  std::map<std::string, int> names;
  std::set<std::string> lines;
  std::string section;
  int number = 0;
  for (const std::string& whole : split(text, '\n')) {
    ++number;
    const std::string line = whole.substr(0, whole.find('#'));
    if (line.find_first_not_of(' ') == std::string::npos) continue;
    if (line.starts_with('[')) {
      section = line.substr(1, line.find(']') - 1);
      continue;
    }
    try {
      for (const std::string& choice : choices_of(line)) {
        if (!lines.insert(choice).second) throw std::runtime_error("the row is there twice");
        ValueRow row = row_of(choice);
        row.section = section;
        for (const std::string& target : split(row.word("on", "gfx942,gfx950"), ',')) {
          row.target = target;
          row.name = name_of(row);
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

std::vector<ValueRow> all_value_rows() {
  std::ifstream file(WAVEJIT_VALUE_ROWS);
  std::stringstream text;
  text << file.rdbuf();
  if (!file) throw std::runtime_error(WAVEJIT_VALUE_ROWS " cannot be read");
  return value_rows_of(text.str());
}

std::vector<ValueRow> value_rows(const std::string& section) {
  std::vector<ValueRow> rows = all_value_rows();
  std::erase_if(rows, [&](const ValueRow& row) { return row.section != section; });
  return rows;
}

}  // namespace wavejit::tests
