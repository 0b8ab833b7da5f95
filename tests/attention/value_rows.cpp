// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attention/value_rows.h"

#include <algorithm>
#include <cctype>
#include <sstream>
#include <utility>

namespace wavejit::tests {
namespace {

// The number behind a letter: "q17". Nothing: another word.
int sized(const std::string& word, char letter) {
  const bool is = word.size() > 1 && word.front() == letter &&
                  std::all_of(word.begin() + 1, word.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
  return is ? std::stoi(word.substr(1)) : -1;
}

// Words that kernels differ in, for the name of the test. Values are left out, but for those that have names.
std::vector<std::string> named_words(const WordedRow& row) {
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
  for (const char* const word : {"numbers", "scores", "mask", "pinned", "beside", "form"}) {
    const std::string value = row.word(word);
    if (row.says(word)) words.push_back(word + plain(value.substr(0, value.find(':'))));
  }
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

std::string name_of(const WordedRow& row) {
  std::vector<std::string> words = named_words(row);
  if (row.section_has_words) words.insert(words.begin(), row.section);
  words.insert(words.begin(), row.target);
  std::istringstream stream(row.descriptor);
  for (std::string word; stream >> word;)
    if (sized(word, 'q') >= 0 || sized(word, 'k') >= 0) words.push_back(word);
  return joined(words);
}

const RowGrammar grammar = {
    .words = {"generic_only", "kernel",        "pinned",        "or_refused", "one_engine", "one_schedule", "beside",
              "padded",       "spread",        "bias_spread",   "bias",       "scores",     "mask",         "whole",
              "form",         "lists_of",      "sink",          "prefix",     "in_turn",    "list",         "tight",
              "at_border",    "dense_keys",    "dense_queries", "counted",    "total",      "first_keys",   "numbers",
              "odd",          "own_workspace", "q_scales",      "k_scales",   "bits_alone"},
    .name = name_of};

std::vector<ValueRow> as_values(const std::vector<WordedRow>& rows) {
  std::vector<ValueRow> values;
  for (const WordedRow& row : rows) values.push_back({row});
  return values;
}

}  // namespace

std::vector<ValueRow> value_rows_of(const std::string& text) { return as_values(worded_rows_of(text, grammar)); }

std::vector<ValueRow> all_value_rows() { return as_values(worded_rows("attention/value_rows.txt", grammar)); }

std::vector<ValueRow> value_rows(const std::string& section) {
  std::vector<ValueRow> rows = all_value_rows();
  std::erase_if(rows, [&](const ValueRow& row) { return row.section != section; });
  return rows;
}

std::vector<ValueRow> sibling_rows() {
  std::vector<ValueRow> rows = all_value_rows();
  std::erase_if(rows, [](const ValueRow& row) { return !row.section_has_words; });
  return rows;
}

}  // namespace wavejit::tests
