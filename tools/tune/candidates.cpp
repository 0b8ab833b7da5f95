// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/tune/candidates.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

namespace wavejit::tools {

std::string to_text(const Candidate& candidate) {
  std::string text;
  for (const auto& [name, value] : candidate.values)
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", name, value);
  return text.empty() ? "default" : text;
}

namespace tune {

std::string known_parameters(const Tuning& tuning) {
  std::string names;
  for (const Tuning::Parameter& parameter : tuning.parameters())
    names += fmt::format("{}{}", names.empty() ? "" : ", ", parameter.name);
  return names;
}

Result<std::vector<std::string>> read_parameters(const Tuning& tuning, const std::string& text) {
  const std::vector<Tuning::Parameter> known = tuning.parameters();
  std::vector<std::string> names;
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, ',');) {
    if (std::ranges::find(known, word, &Tuning::Parameter::name) == known.end()) {
      return failed(ExitCode::usage,
                    fmt::format("--parameters: '{}' is no parameter; {} are accepted", word, known_parameters(tuning)));
    }
    names.push_back(word);
  }
  if (names.empty())
    return failed(ExitCode::usage, fmt::format("--parameters: empty; {} are accepted", known_parameters(tuning)));
  return names;
}

std::string list_parameters(const Tuning& tuning, const std::vector<std::string>& targets) {
  std::string text;
  for (const Tuning::Parameter& parameter : tuning.parameters()) {
    text += fmt::format("{}: {}\n", parameter.name, parameter.help);
    for (const std::string& target : targets) text += tuning.values(parameter.name, target);
  }
  return text;
}

}  // namespace tune

}  // namespace wavejit::tools
