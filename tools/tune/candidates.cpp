#include "tools/tune/candidates.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <span>
#include <sstream>
#include <string_view>

#include "targets/targets.h"
#include "templates/attention_forward/call/ladders.h"

namespace wavejit::tools::tune {
namespace {

using attention_forward::Pipeline;
using attention_forward::QueryRows;
using targets::Target;
using Values = std::vector<std::string>;

Values pipeline_itself(const Target& /*target*/, Pipeline pipeline) { return {std::string(to_text(pipeline))}; }

Values tile_sizes(const Target& target, Pipeline pipeline) {
  Values values;
  for (const int rows : attention_forward::tile_queries(target, pipeline)) values.push_back(std::to_string(rows));
  return values;
}

Values ladder_names(const Target& /*target*/, Pipeline pipeline) {
  Values values;
  for (const attention_forward::Ladder& ladder : attention_forward::ladders(pipeline)) values.emplace_back(ladder.name);
  return values;
}

// Only one pipeline has the two, and says nothing of what another is asked for.
Values switch_of_dualwave(const Target& /*target*/, Pipeline pipeline) {
  return pipeline == Pipeline::dualwave ? Values{"on", "off"} : Values{};
}

Values switch_of_launches(const Target& /*target*/, Pipeline /*pipeline*/) { return {"on", "off"}; }

struct Parameter {
  std::string_view name;
  std::string_view help;
  std::string Candidate::* member;
  // Everything that it can be for a pipeline that the target runs.
  Values (*values)(const Target& target, Pipeline pipeline);
};
// Spelled as options of an engine, or as what stands behind its pipeline.
constexpr std::array<Parameter, 6> all_parameters = {{
    {"pipeline", "how a workgroup walks the tiles of keys", &Candidate::pipeline, pipeline_itself},
    {"tile_queries", "query rows of a workgroup, by the length of the query", &Candidate::tile_queries, tile_sizes},
    {"ladder", "what stands between which matrix instructions", &Candidate::ladder, ladder_names},
    {"stagger", "the second group of waves runs one cluster behind; tried, not written", &Candidate::stagger,
     switch_of_dualwave},
    {"setprio", "the computing wave issues first; tried, not written", &Candidate::setprio, switch_of_dualwave},
    {"xcd_swizzle", "query heads of one kv head stay on one die, auto unless asked for; tried, not written",
     &Candidate::xcd_swizzle, switch_of_launches},
}};

// What kernels have when nobody says otherwise; empty when that depends on the launch.
std::string usual(const Parameter& parameter, const Target& target, Pipeline pipeline, QueryRows rows) {
  if (parameter.member == &Candidate::tile_queries)
    return std::to_string(attention_forward::default_tile_queries(target, pipeline, rows, {128, 128}));
  if (parameter.member == &Candidate::ladder) {
    const std::string ladder = attention_forward::default_ladder(target, pipeline, rows);
    return ladder.empty() ? std::string(attention_forward::standard_ladder) : ladder;
  }
  return parameter.member == &Candidate::xcd_swizzle ? "" : "on";
}

// `from`, and with each other value that the parameter has.
void vary(const Parameter& parameter, const Target& target, Pipeline pipeline, QueryRows rows,
          std::vector<Candidate>& from) {
  std::vector<Candidate> varied = from;
  for (const std::string& value : parameter.values(target, pipeline)) {
    if (value == usual(parameter, target, pipeline, rows)) continue;
    for (Candidate candidate : from) {
      candidate.*parameter.member = value;
      varied.push_back(std::move(candidate));
    }
  }
  from = std::move(varied);
}

std::string ladder_lines(Pipeline pipeline) {
  std::string text;
  for (const attention_forward::Ladder& ladder : attention_forward::ladders(pipeline))
    text += fmt::format("      {:<13} {}\n", ladder.name, ladder.idea);
  return text;
}

}  // namespace

std::string to_text(const Candidate& candidate) {
  std::string text;
  for (const Parameter& parameter : all_parameters) {
    const std::string& value = candidate.*parameter.member;
    if (!value.empty()) text += fmt::format("{}{}={}", text.empty() ? "" : " ", parameter.name, value);
  }
  return text.empty() ? "default" : text;
}

std::string pipeline_option(const Candidate& candidate) {
  std::string pinned;
  if (!candidate.tile_queries.empty()) pinned += " tile_queries=" + candidate.tile_queries;
  if (!candidate.ladder.empty()) pinned += " ladder=" + candidate.ladder;
  return pinned.empty() || !candidate.pipeline.empty() ? candidate.pipeline + pinned : "auto" + pinned;
}

std::string known_parameters() {
  std::vector<std::string_view> names;
  names.reserve(all_parameters.size());
  for (const Parameter& parameter : all_parameters) names.push_back(parameter.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

Result<std::vector<std::string>> read_parameters(const std::string& text) {
  std::vector<std::string> names;
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, ',');) {
    if (std::ranges::find(all_parameters, word, &Parameter::name) == all_parameters.end()) {
      return failed(ExitCode::usage,
                    fmt::format("--parameters: '{}' is no parameter; {} are accepted", word, known_parameters()));
    }
    names.push_back(word);
  }
  if (names.empty()) {
    return failed(ExitCode::usage, fmt::format("--parameters: empty; {} are accepted", known_parameters()));
  }
  return names;
}

std::vector<Candidate> candidates(const std::vector<std::string>& parameters, const std::string& target_name,
                                  QueryRows rows) {
  const Target& target = *targets::find_target(target_name);
  const auto varies = [&](std::string_view name) { return std::ranges::contains(parameters, name); };
  std::vector<Candidate> chosen = {{}};
  const auto add = [&](const std::string& name, Pipeline pipeline) {
    std::vector<Candidate> some = {{}};
    some.front().pipeline = name;
    if (attention_forward::missing_for(pipeline, target).empty()) {
      for (const Parameter& parameter : all_parameters) {
        if (parameter.member != &Candidate::pipeline && varies(parameter.name))
          vary(parameter, target, pipeline, rows, some);
      }
    }
    for (Candidate& candidate : some) {
      if (!std::ranges::contains(chosen, candidate)) chosen.push_back(std::move(candidate));
    }
  };
  if (varies("pipeline")) {
    for (const Pipeline pipeline : attention_forward::all_pipelines) add(std::string(to_text(pipeline)), pipeline);
  } else {
    add("", attention_forward::default_pipeline(target, rows));
  }
  return chosen;
}

std::string list_parameters(const std::vector<std::string>& names) {
  std::string text;
  for (const Parameter& parameter : all_parameters) {
    text += fmt::format("{}: {}\n", parameter.name, parameter.help);
    for (const std::string& name : names) {
      const Target* target = targets::find_target(name);
      for (const Pipeline pipeline : attention_forward::all_pipelines) {
        const Values values = parameter.values(*target, pipeline);
        if (!attention_forward::missing_for(pipeline, *target).empty() || values.empty()) continue;
        const std::string where = fmt::format("  {} {}", target->id, to_text(pipeline));
        if (parameter.member == &Candidate::pipeline) {
          text += where + "\n";
        } else if (parameter.member == &Candidate::ladder) {
          text += where + "\n" + ladder_lines(pipeline);
        } else {
          text += fmt::format("{}: {}\n", where, fmt::join(values, ", "));
        }
      }
    }
  }
  return text;
}

}  // namespace wavejit::tools::tune
