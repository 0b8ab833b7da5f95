// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "targets/targets.h"
#include "templates/attention_forward/kernel/ladders.h"
#include "templates/attention_forward/kernel/parameters.h"
#include "templates/attention_forward/program/answers.h"
#include "templates/attention_forward/program/attention_case.h"

namespace wavejit::attention_forward::program {

namespace {

using targets::Target;
using tools::Candidate;
using Values = std::vector<std::string>;

Values pipeline_itself(const Target& /*target*/, Pipeline pipeline) { return {std::string(to_text(pipeline))}; }

Values tile_sizes(const Target& target, Pipeline pipeline) {
  Values values;
  for (const int rows : attention_forward::tile_queries(target, pipeline)) values.push_back(std::to_string(rows));
  return values;
}

Values ladder_names(const Target& /*target*/, Pipeline pipeline) {
  Values values;
  for (const Ladder& ladder : ladders(pipeline)) values.emplace_back(ladder.name);
  return values;
}

// Only one pipeline has the two, and says nothing of what another is asked for.
Values switch_of_dualwave(const Target& /*target*/, Pipeline pipeline) {
  return pipeline == Pipeline::dualwave ? Values{"on", "off"} : Values{};
}

Values switch_of_launches(const Target& /*target*/, Pipeline /*pipeline*/) { return {"on", "off"}; }

// A ladder is named as it is used: "" means standard, where the pipeline has any.
std::string named_ladder(Pipeline pipeline, const std::string& ladder) {
  return ladder.empty() && !ladders(pipeline).empty() ? std::string(standard_ladder) : ladder;
}

// What kernels have when nobody says otherwise; empty when that depends on the launch.
std::string usual_tile(const Target& target, Pipeline pipeline, QueryRows rows) {
  return std::to_string(default_tile_queries(target, pipeline, rows, {128, 128}));
}
std::string usual_ladder(const Target& target, Pipeline pipeline, QueryRows rows) {
  const std::string ladder = default_ladder(target, pipeline, rows);
  return ladder.empty() ? std::string(standard_ladder) : ladder;
}
std::string usual_switch(const Target& /*target*/, Pipeline /*pipeline*/, QueryRows /*rows*/) { return "on"; }
std::string of_the_launch(const Target& /*target*/, Pipeline /*pipeline*/, QueryRows /*rows*/) { return ""; }

// A word of the engine's option `pipeline`, or the pipeline itself.
struct Parameter {
  std::string_view name;
  std::string_view help;
  // Everything that it can be for a pipeline that the target runs.
  Values (*values)(const Target& target, Pipeline pipeline);
  std::string (*usual)(const Target& target, Pipeline pipeline, QueryRows rows);
};
constexpr std::string_view pipeline_name = "pipeline";
constexpr std::string_view ladder_name = "ladder";
constexpr std::array<Parameter, 6> all_parameters = {{
    {pipeline_name, "how a workgroup walks the tiles of keys", pipeline_itself, of_the_launch},
    {"tile_queries", "query rows of a workgroup, by the length of the query", tile_sizes, usual_tile},
    {ladder_name, "what stands between which matrix instructions", ladder_names, usual_ladder},
    {"stagger", "the second group of waves runs one cluster behind; tried, not written", switch_of_dualwave,
     usual_switch},
    {"setprio", "the computing wave issues first; tried, not written", switch_of_dualwave, usual_switch},
    {"xcd_swizzle", "neighbouring query heads run on one die, auto unless asked for; tried, not written",
     switch_of_launches, of_the_launch},
}};

// `from`, and with each other value that the parameter has.
void vary(const Parameter& parameter, const Target& target, Pipeline pipeline, QueryRows rows,
          std::vector<Candidate>& from) {
  std::vector<Candidate> varied = from;
  for (const std::string& value : parameter.values(target, pipeline)) {
    if (value == parameter.usual(target, pipeline, rows)) continue;
    for (Candidate candidate : from) {
      candidate.values.emplace_back(parameter.name, value);
      varied.push_back(std::move(candidate));
    }
  }
  from = std::move(varied);
}

// In the order of all_query_rows; the file that is written does not compile with other names.
constexpr std::array<std::string_view, std::size(all_query_rows)> row_names = {"up_to_32", "up_to_64", "up_to_255",
                                                                               "more"};

QueryRows rows_of(const tools::Problem& problem) {
  return query_rows(static_cast<std::uint64_t>(static_cast<const ParsedProblem&>(problem).problem().query_length));
}

class AttentionTuning : public tools::Tuning {
 public:
  std::vector<Tuning::Parameter> parameters() const override {
    std::vector<Tuning::Parameter> known;
    known.reserve(std::size(all_parameters));
    for (const program::Parameter& each : all_parameters) known.push_back({each.name, each.help});
    return known;
  }
  std::string_view usual_parameters() const override { return "pipeline,ladder,tile_queries"; }

  std::string values(std::string_view name, const std::string& target_name) const override {
    const program::Parameter& parameter = *std::ranges::find(all_parameters, name, &program::Parameter::name);
    const Target* target = targets::find_target(target_name);
    std::string text;
    for (const Pipeline pipeline : all_pipelines) {
      const Values values = parameter.values(*target, pipeline);
      if (!missing_for(pipeline, *target).empty() || values.empty()) continue;
      const std::string where = fmt::format("  {} {}", target->id, to_text(pipeline));
      const bool by_itself = name == pipeline_name || name == ladder_name;
      text += by_itself ? where + "\n" : fmt::format("{}: {}\n", where, fmt::join(values, ", "));
      if (name == ladder_name)
        for (const Ladder& ladder : ladders(pipeline))
          text += fmt::format("      {:<13} {}\n", ladder.name, ladder.idea);
    }
    return text;
  }

  std::vector<Candidate> candidates(const std::vector<std::string>& parameters, const std::string& target_name,
                                    const tools::Problem& problem) const override {
    const Target& target = *targets::find_target(target_name);
    const QueryRows rows = rows_of(problem);
    const auto varies = [&](std::string_view name) { return std::ranges::contains(parameters, name); };
    std::vector<Candidate> chosen = {{}};
    const auto add = [&](Candidate first, Pipeline pipeline) {
      std::vector<Candidate> some = {std::move(first)};
      if (missing_for(pipeline, target).empty()) {
        for (const program::Parameter& parameter : all_parameters)
          if (parameter.name != pipeline_name && varies(parameter.name)) vary(parameter, target, pipeline, rows, some);
      }
      for (Candidate& candidate : some)
        if (!std::ranges::contains(chosen, candidate)) chosen.push_back(std::move(candidate));
    };
    if (varies(pipeline_name)) {
      for (const Pipeline pipeline : all_pipelines)
        add({.values = {{std::string(pipeline_name), std::string(to_text(pipeline))}}}, pipeline);
    } else {
      add({}, default_pipeline(target, rows));
    }
    return chosen;
  }

  // The engine's pipeline with its words behind it: "dualwave", "auto ladder=early".
  tools::NamedValues engine_options(const Candidate& candidate) const override {
    std::string pipeline(candidate.value(pipeline_name));
    std::string words;
    for (const program::Parameter& parameter : all_parameters) {
      const std::string_view value = candidate.value(parameter.name);
      if (!value.empty() && parameter.name != pipeline_name) words += fmt::format(" {}={}", parameter.name, value);
    }
    if (pipeline.empty() && words.empty()) return {};
    return {{"pipeline", (pipeline.empty() ? "auto" : pipeline) + words}};
  }

  std::vector<std::string> groups() const override { return {row_names.begin(), row_names.end()}; }
  std::string group_of(const tools::Problem& problem) const override {
    return std::string(row_names[static_cast<std::size_t>(rows_of(problem))]);
  }
  std::string group_text(const std::string& group) const override { return fmt::format("queries of {} rows", group); }
  std::string_view group_field() const override { return "query_rows"; }

  tools::Choice choice_of(const tools::Tried& tried) const override {
    const auto spec = parse_spec(tried.kernel_spec);
    if (!spec) return {};
    const std::string pipeline(to_text(spec->pipeline));
    const std::string ladder = named_ladder(spec->pipeline, spec->ladder);
    return {
        .text = fmt::format("{}, {} rows{}", pipeline, spec->tile_queries, ladder.empty() ? "" : ", ladder " + ladder),
        .fields = {{"pipeline", pipeline}, {"tile_queries", spec->tile_queries}, {"ladder", ladder}}};
  }

  std::string table_comment() const override {
    return "// Made by `wavejit tune`, from what the clock of the simulated GPU predicts (docs/tune.md); a test compares. Which\n"
           "// pipeline, query rows of a workgroup and ladder a target prefers for how many query rows. Pairs that do not stand here\n"
           "// go by the target's abilities.\n";
  }
  std::string table_row(const std::string& target, const std::string& group,
                        const tools::Choice& choice) const override {
    const auto field = [&](std::size_t index) -> const nlohmann::json& { return choice.fields[index].second; };
    return fmt::format("{{\"{}\", QueryRows::{}, Pipeline::{}, {}, \"{}\"}},", target, group,
                       field(0).get<std::string>(), field(1).get<int>(), field(2).get<std::string>());
  }
};

}  // namespace

const tools::Tuning& attention_tuning() { return tools::only<AttentionTuning>(); }

}  // namespace wavejit::attention_forward::program
