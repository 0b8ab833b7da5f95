// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/profile/subject.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "tools/families.h"
#include "vocabulary/nearest_word.h"

namespace wavejit::tools {

std::string settings_help() {
  return fmt::format("{}; of a code object device, {}", fmt::join(EngineOptions::settable_names(), ", "),
                     fmt::join(CodeObjectCall::setting_names(), ", "));
}

Result<Subject> parse_subject(const std::string& what, const std::vector<std::string>& settings,
                              const EngineOptions& engine, const std::string& field) {
  Subject subject;
  subject.text = what;
  subject.engine = engine;
  if (family_of(what) != nullptr) {
    auto problem = parse_problem(what);
    if (!problem) return std::unexpected(problem.error());
    subject.text = (*problem)->text();
    subject.problem = std::move(*problem);
  } else {
    std::error_code ignored;
    if (!std::filesystem::is_regular_file(what, ignored)) {
      return failed(ExitCode::usage,
                    fmt::format("'{}' is neither a problem descriptor ('{} …') nor a file with a code object{}", what,
                                family_names(), meant_family(what)));
    }
    subject.code.emplace();
    subject.code->path = what;
  }
  for (const std::string& setting : settings) {
    const std::size_t equals = setting.find('=');
    const std::string name = setting.substr(0, equals);
    if (equals == std::string::npos) {
      return failed(ExitCode::usage, fmt::format("--{} {}: NAME=VALUE is accepted, as kv-splits=4", field, setting));
    }
    const std::string value = setting.substr(equals + 1);
    Result<bool> known = subject.code ? subject.code->set(name, value) : Result<bool>(false);
    if (!known) return failed(known.error().code, fmt::format("--{} {}: {}", field, setting, known.error().what));
    const bool of_engine = !*known && (!subject.code || name == "device");
    if (!*known && !(of_engine && subject.engine.set(name, value))) {
      // A code object has none of an engine's settings.
      std::vector<std::string> names;
      for (const std::string_view each : CodeObjectCall::setting_names()) names.emplace_back(each);
      for (const std::string_view each : EngineOptions::settable_names())
        if (!subject.code || each == "device") names.emplace_back(each);
      if (std::ranges::contains(names, name))
        return failed(ExitCode::usage,
                      fmt::format("--{} {}: '{}' is a word of code objects (a file), and '{}' is a problem", field,
                                  setting, name, what));
      if (const std::string meant = meant_pipeline(name); !meant.empty() && !subject.code)
        return failed(ExitCode::usage, fmt::format("--{} {}: '{}' is a word of pipeline; write --{} \"pipeline={}\"",
                                                   field, setting, name, field, meant));
      return failed(ExitCode::usage, fmt::format("--{} {}: '{}' is not accepted{}", field, setting, name,
                                                 vocabulary::meant_or_list(name, names, "`wavejit profile --help`")));
    }
    if (of_engine) subject.asked.push_back(name);
    if (of_engine && name == "pipeline")
      for (std::string& word : pipeline_words_in(value)) subject.asked.push_back(std::move(word));
    subject.settings += (subject.settings.empty() ? "" : " ") + setting;
  }
  return subject;
}

}  // namespace wavejit::tools
