// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/settings/pipeline_words.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <set>
#include <utility>

#include "families/kernel/toggles.h"

namespace wavejit::runtime {
namespace {

constexpr std::array<std::string_view, 4> pipeline_names = {"auto", "generic", "dualwave", "interleaved"};

// What becomes of a word's value, and which values there are; the first is the default.
struct WordRow {
  PipelineWord word;
  std::array<std::string_view, 3> values;
  void (*take)(PipelineWords& words, std::string_view value);
};

template <const std::string_view& name>
void keep_way(PipelineWords& words, std::string_view value) {
  words.ways += (words.ways.empty() ? "" : " ") + std::string(name) + "=" + std::string(value);
}

constexpr std::string_view stagger = "stagger";
constexpr std::string_view setprio = "setprio";
constexpr std::string_view o_store = "o_store";

constexpr std::array word_rows = {
    WordRow{{stagger, "stagger=off"}, {"on", "off"}, keep_way<stagger>},
    WordRow{{setprio, "setprio=off"}, {"on", "off"}, keep_way<setprio>},
    WordRow{{o_store, "o_store=scalar"}, {"auto", "permlane", "scalar"}, keep_way<o_store>},
    WordRow{{"lazy_rescale", "lazy_rescale=off"},
            {"on", "off"},
            [](PipelineWords& words, std::string_view value) { words.lazy_rescale = value == "on"; }},
    WordRow{{"xcd_swizzle", "xcd_swizzle=on"},
            {"auto", "on", "off"},
            [](PipelineWords& words, std::string_view value) { words.xcd_swizzle = value == "on"; }},
};

std::string values_of(const WordRow& row) {
  std::string text;
  for (const std::string_view value : row.values)
    if (!value.empty()) text += (text.empty() ? "" : ", ") + std::string(value);
  return text;
}

}  // namespace

std::expected<PipelineWords, std::string> parse_pipeline(std::string_view text) {
  PipelineWords words;
  std::set<std::string_view> said;
  bool first = true;
  for (std::string_view rest = text;;) {
    const std::size_t space = rest.find(' ');
    const std::string_view word = rest.substr(0, space);
    const auto [name, value] = families::name_and_value(word);
    const auto* row = std::ranges::find(word_rows, name, [](const WordRow& each) { return each.word.name; });
    if (std::exchange(first, false) && !word.contains('=')) {
      if (!std::ranges::contains(pipeline_names, word)) return std::unexpected("not known");
      words.name = word;
    } else if (word.empty()) {
      return std::unexpected("not known: one space stands between words, and none at the end");
    } else if (row == word_rows.end()) {
      words.pinned += (words.pinned.empty() ? "" : " ") + std::string(word);
    } else if (value.empty() || !std::ranges::contains(row->values, value)) {
      return std::unexpected("not known for '" + std::string(word) + "', where " + std::string(name) + " is one of " +
                             values_of(*row));
    } else if (!said.insert(name).second) {
      return std::unexpected("not known, since it says " + std::string(name) + " twice");
    } else if (value != row->values.front()) {
      row->take(words, value);
    }
    if (space == std::string_view::npos) return words;
    rest.remove_prefix(space + 1);
  }
}

std::string to_text(const PipelineWords& words) {
  std::string text = words.name;
  for (const std::string& more : {words.pinned, words.ways})
    if (!more.empty()) text += " " + more;
  if (!words.lazy_rescale) text += " lazy_rescale=off";
  if (words.xcd_swizzle) text += *words.xcd_swizzle ? " xcd_swizzle=on" : " xcd_swizzle=off";
  return text;
}

std::span<const PipelineWord> known_pipeline_words() {
  static constexpr auto all = [] {
    std::array<PipelineWord, word_rows.size()> words;
    std::ranges::transform(word_rows, words.begin(), &WordRow::word);
    return words;
  }();
  return all;
}

}  // namespace wavejit::runtime
