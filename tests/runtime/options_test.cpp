// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What people read of an option is what its row says (wavejit/options.def): the documentation and the struct's
// comments.
#include "runtime/settings/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "wavejit/options.hpp"

namespace wavejit::tests {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

// The rows of a Markdown table by what stands in their first cell in backticks.
std::map<std::string, std::vector<std::string>> table_of(const std::string& text) {
  std::map<std::string, std::vector<std::string>> rows;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, end - at);
    at = end + 1;
    if (!line.starts_with("| `WAVEJIT_")) continue;
    std::vector<std::string> cells;
    for (std::size_t from = 2; from < line.size();) {
      const std::size_t bar = std::min(line.find(" |", from), line.size());
      cells.push_back(line.substr(from, bar - from));
      from = bar + 3;
    }
    rows[cells[0].substr(1, cells[0].size() - 2)] = {cells.begin() + 1, cells.end()};
  }
  return rows;
}

std::string in_backticks(std::string words) {
  for (std::size_t at = 0; (at = words.find(", ", at)) != std::string::npos; at += 6) words.replace(at, 2, "`, `");
  return "`" + words + "`";
}

// docs/environment.md: | variable | values | default | what it does |
TEST(Options, DocumentationSaysWhatTheRowsSay) {
  const auto rows = table_of(text_of(std::string(WAVEJIT_TREE) + "/docs/environment.md"));
  for (const EngineOption& option : engine_options) {
    SCOPED_TRACE(option.variable);
    const auto found = rows.find(option.variable);
    ASSERT_NE(found, rows.end());
    const auto& cells = found->second;
    ASSERT_EQ(cells.size(), 3U);
    if (*option.shape == '\0') EXPECT_EQ(cells[0], in_backticks(option.values));
    std::string standard = cells[1];
    std::erase(standard, '`');
    EXPECT_EQ(standard, option.standard);
    EXPECT_THAT(cells[2], StartsWith(option.help));
  }
}

// Variables of the simulated GPU stand there too, and no others.
TEST(Options, DocumentationHasNoVariableThatNobodyReads) {
  for (const auto& [name, cells] : table_of(text_of(std::string(WAVEJIT_TREE) + "/docs/environment.md"))) {
    const bool of_option =
        std::ranges::any_of(engine_options, [&](const EngineOption& o) { return name == o.variable; });
    EXPECT_TRUE(of_option || name.starts_with("WAVEJIT_SIM_")) << name;
  }
}

TEST(Options, TheHeaderNamesEachVariableBesideItsField) {
  const std::string header = text_of(std::string(WAVEJIT_HEADERS) + "/wavejit.h");
  for (const EngineOption& option : engine_options)
    EXPECT_THAT(header, HasSubstr(std::string(" ") + option.variable + " */"));
}

// A row stands where its field stands, so that a new one can only be the last.
TEST(Options, RowsStandInTheOrderOfTheFields) {
  const wavejit_engine_options options{};
  const void* before = &options;
  for (const runtime::OptionRow& row : runtime::option_rows) {
    EXPECT_LT(before, static_cast<const void*>(&(options.*row.field))) << row.name;
    before = &(options.*row.field);
  }
}

// C++'s struct hands each text over in its own field.
TEST(Options, CppHandsEachTextOver) {
  for (std::size_t i = 0; i < std::size(engine_options); ++i) {
    EngineOptions options;
    options.*engine_options[i].text = "this one";
    const wavejit_engine_options c = options.to_c();
    for (std::size_t j = 0; j < std::size(engine_options); ++j)
      EXPECT_STREQ(c.*runtime::option_rows[j].field, i == j ? "this one" : "") << engine_options[j].name;
  }
}

// Engine options of one word take each of the words, in either place, and tell it.
TEST(Options, EveryAcceptedWordIsAccepted) {
  for (std::size_t i = 0; i < std::size(engine_options); ++i) {
    if (*engine_options[i].shape != '\0') continue;
    std::string words = engine_options[i].values;
    EXPECT_THAT(", " + words + ",", HasSubstr(std::string(", ") + engine_options[i].standard + ","));
    for (std::size_t at = 0; at < words.size();) {
      const std::size_t end = std::min(words.find(", ", at), words.size());
      const std::string word = words.substr(at, end - at);
      at = end + 2;
      wavejit_engine_options given{};
      given.size = sizeof given;
      given.*runtime::option_rows[i].field = word.c_str();
      const auto config = runtime::make_config(&given, {});
      ASSERT_TRUE(config) << engine_options[i].name << "=" << word;
      EXPECT_THAT(runtime::describe(*config),
                  ::testing::Contains(StartsWith(std::string(engine_options[i].name) + "=" + word)));
    }
  }
}

}  // namespace
}  // namespace wavejit::tests
