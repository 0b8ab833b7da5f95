#include "tools/tune/candidates.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>
#include <sstream>
#include <string_view>
#include <utility>

namespace wavejit::tools::tune {
namespace {

constexpr std::array<std::string_view, 4> parameter_names = {"pipeline", "stagger", "setprio", "xcd_swizzle"};

}  // namespace

std::string to_text(const Candidate& candidate) {
  std::string text;
  for (const auto& [name, value] :
       {std::pair("pipeline", &candidate.pipeline), std::pair("stagger", &candidate.stagger),
        std::pair("setprio", &candidate.setprio), std::pair("xcd_swizzle", &candidate.xcd_swizzle)}) {
    if (!value->empty()) text += fmt::format("{}{}={}", text.empty() ? "" : " ", name, *value);
  }
  return text.empty() ? "default" : text;
}

std::string known_parameters() { return fmt::format("{}", fmt::join(parameter_names, ", ")); }

Result<std::vector<Candidate>> candidates(const std::string& parameters) {
  std::set<std::string> vary;
  std::istringstream words(parameters);
  for (std::string word; std::getline(words, word, ',');) {
    if (std::ranges::find(parameter_names, word) == parameter_names.end()) {
      return failed(ExitCode::usage,
                    fmt::format("--parameters: '{}' is no parameter; {} are accepted", word, known_parameters()));
    }
    vary.insert(word);
  }
  if (vary.empty()) {
    return failed(ExitCode::usage, fmt::format("--parameters: empty; {} are accepted", known_parameters()));
  }
  const auto values = [&](const char* name, std::vector<std::string> all) {
    return vary.contains(name) ? std::move(all) : std::vector<std::string>{""};
  };
  std::vector<Candidate> chosen = {{}};
  for (const std::string& swizzle : values("xcd_swizzle", {"", "on", "off"})) {
    for (const std::string& pipeline : values("pipeline", {"generic", "interleaved", "dualwave"})) {
      // Only one pipeline has the two, and says nothing of what another is asked for.
      const bool staggers = pipeline.empty() || pipeline == "dualwave";
      for (const std::string& stagger : staggers ? values("stagger", {"", "off"}) : std::vector<std::string>{""}) {
        for (const std::string& setprio : staggers ? values("setprio", {"", "off"}) : std::vector<std::string>{""}) {
          Candidate candidate{pipeline, stagger, setprio, swizzle};
          if (std::ranges::find(chosen, candidate) == chosen.end()) chosen.push_back(std::move(candidate));
        }
      }
    }
  }
  return chosen;
}

}  // namespace wavejit::tools::tune
