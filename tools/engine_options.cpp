// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/engine_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "tools/targets.h"
#include "vocabulary/nearest_word.h"

namespace wavejit::tools {

CLI::Option* limit(CLI::Option* option, const std::string& type_name,
                   std::function<std::string(const std::string&)> problem_of) {
  return option->type_name(type_name)->check(
      CLI::Validator([problem_of = std::move(problem_of)](std::string& value) { return problem_of(value); }, ""));
}

CLI::Option* add_choice(CLI::App& command, const std::string& name, std::string& value, std::vector<std::string> words,
                        const std::string& help) {
  const std::string shown = fmt::format("{}", fmt::join(words, "|"));
  return limit(command.add_option(name, value, help), shown,
               [words = std::move(words)](const std::string& given) -> std::string {
                 if (std::ranges::find(words, given) != words.end()) return {};
                 return fmt::format("'{}' is not accepted{}", given, vocabulary::meant_or_list(given, words, {}));
               });
}

CLI::Option* limit_count(CLI::Option* option, int most) {
  return limit(option, "N", [most](const std::string& given) -> std::string {
    int value = 0;
    const auto [stop, error] = std::from_chars(given.data(), given.data() + given.size(), value);
    if (error == std::errc() && stop == given.data() + given.size() && value >= 0 && value <= most) return {};
    return fmt::format("'{}' is not accepted; 0 to {} are", given, most);
  });
}

std::vector<std::string> pipeline_words_in(std::string_view pipeline) {
  std::vector<std::string> names;
  while (!pipeline.empty()) {
    const std::size_t space = std::min(pipeline.find(' '), pipeline.size());
    const std::string_view word = pipeline.substr(0, space);
    if (const std::size_t equals = word.find('='); equals != std::string_view::npos)
      names.emplace_back(word.substr(0, equals));
    pipeline.remove_prefix(std::min(space + 1, pipeline.size()));
  }
  return names;
}

std::string absolute_layers(std::string_view layers) {
  std::string absolute;
  for (;;) {
    const std::size_t colon = std::min(layers.find(':'), layers.size());
    std::error_code none;
    const std::string layer(layers.substr(0, colon));
    absolute += layer.empty() ? layer : std::filesystem::absolute(layer, none).string();
    if (colon == layers.size()) return absolute;
    absolute += ':';
    layers.remove_prefix(colon + 1);
  }
}

namespace {

// What makes a kernel or its launch another one, and where it runs.
bool is_settable(const EngineOption& row) {
  return row.scope == OptionScope::device || row.scope == OptionScope::kernel || row.scope == OptionScope::launch;
}

std::string_view name_of(const EngineOption& row) { return std::string_view(row.flag).substr(2); }

// The row's help with what stands in for the option; what the program itself knows better.
std::string help_of(const EngineOption& row) {
  std::string help = row.help;
  if (row.scope == OptionScope::device)
    help = fmt::format("hip, hip:<ordinal>, or a simulated GPU: {}, … (wavejit sim --help names all)",
                       joined(known_targets(), ", ", "sim:"));
  else if (std::string_view(row.name) == "cache_layers")
    help += ", with ':' between";
  else if (*row.shape != '\0' && std::string_view(row.values) != "a path")
    help += fmt::format("; accepted: {}", row.values);
  if (std::string_view(row.name) == "cache_remote")
    help += ". A password is better in the variable, since everybody on the machine sees a command line";
  return fmt::format("{} (default: ${}, then {})", help, row.variable, row.standard);
}

// Options that many commands take stand behind a command's own in its help.
constexpr const char* common_group = "Engine options";

std::vector<std::string> words_of(std::string_view values) {
  std::vector<std::string> words;
  while (!values.empty()) {
    const std::size_t comma = std::min(values.find(", "), values.size());
    words.emplace_back(values.substr(0, comma));
    values.remove_prefix(std::min(comma + 2, values.size()));
  }
  return words;
}

}  // namespace

void EngineOptions::add(CLI::App& command, OptionScope scope, std::string_view but) {
  for (const EngineOption& row : engine_options) {
    if (row.scope != scope || row.flag == but || *row.flag == '\0') continue;
    std::string& text = chosen_.*row.text;
    if (*row.shape == '\0') {
      add_choice(command, row.flag, text, words_of(row.values), help_of(row))->group(common_group);
      continue;
    }
    CLI::Option* option = command.add_option(row.flag, text, help_of(row))->type_name(row.shape)->group(common_group);
    if (std::string_view(row.name) != "cache_layers") continue;
    option->transform(CLI::Validator(
        [](std::string& layers) {
          layers = absolute_layers(layers);
          return std::string();
        },
        ""));
  }
}

void EngineOptions::add_device(CLI::App& command) { add(command, OptionScope::device); }
void EngineOptions::add_cache(CLI::App& command) { add(command, OptionScope::cache); }
void EngineOptions::add_cache_remote(CLI::App& command) { add(command, OptionScope::remote); }
void EngineOptions::add_cache_limit(CLI::App& command) { add(command, OptionScope::upkeep); }

void EngineOptions::add_compiler(CLI::App& command, bool with_pipeline) {
  add(command, OptionScope::compiler);
  add(command, OptionScope::kernel, with_pipeline ? "" : "--pipeline");
  add(command, OptionScope::launch);
}

void EngineOptions::add_log_level(CLI::App& command) { add(command, OptionScope::log); }

bool EngineOptions::set(std::string_view name, std::string value) {
  for (const EngineOption& row : engine_options) {
    if (!is_settable(row) || name_of(row) != name) continue;
    chosen_.*row.text = std::move(value);
    return true;
  }
  return false;
}

std::vector<std::string_view> EngineOptions::settable_names() {
  std::vector<std::string_view> names;
  for (const EngineOption& row : engine_options)
    if (is_settable(row)) names.push_back(name_of(row));
  return names;
}

std::vector<std::string> EngineOptions::given_names() const {
  std::vector<std::string> names;
  for (const EngineOption& row : engine_options)
    if (is_settable(row) && !(chosen_.*row.text).empty()) names.emplace_back(name_of(row));
  for (std::string& word : pipeline_words_in(chosen_.pipeline)) names.push_back(std::move(word));
  return names;
}

std::string EngineOptions::given_words() const {
  std::string words;
  for (const EngineOption& row : engine_options)
    if (const std::string& text = chosen_.*row.text; is_settable(row) && !text.empty())
      words += text.contains(' ') ? fmt::format(" {} '{}'", row.flag, text) : fmt::format(" {} {}", row.flag, text);
  return words;
}

}  // namespace wavejit::tools
