#include "tools/tune/defaults.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "templates/attention_forward/call/ladders.h"

namespace wavejit::tools::tune {
namespace {

constexpr std::string_view default_candidate = "default";

using attention_forward::QueryRows;

Choice choice_of(const std::string& kernel) {
  const auto spec = attention_forward::parse_spec(kernel);
  if (!spec) return {};
  const bool usual = spec->ladder.empty() && !attention_forward::ladders(spec->pipeline).empty();
  return {.pipeline = std::string(to_text(spec->pipeline)),
          .tile_queries = spec->tile_queries,
          .ladder = usual ? std::string(attention_forward::standard_ladder) : spec->ladder};
}

std::string entry(const Decision& decision) {
  return fmt::format("{{\"{}\", QueryRows::{}, Pipeline::{}, {}, \"{}\"}},", decision.target, name_of(decision.rows),
                     decision.chosen.pipeline, decision.chosen.tile_queries, decision.chosen.ladder);
}

Decision decide_one(const std::string& target, QueryRows rows, const std::set<std::string>& descriptors,
                    const std::vector<Trial>& trials, double margin) {
  Decision decision;
  decision.target = target;
  decision.rows = rows;
  decision.descriptors = static_cast<int>(descriptors.size());
  std::map<std::string, std::map<std::string, const Trial*>> by_candidate;
  for (const Trial& trial : trials) {
    if (trial.target == target && descriptors.contains(trial.descriptor) && !trial.kernel.empty())
      by_candidate[trial.candidate][trial.descriptor] = &trial;
  }
  const auto& usual = by_candidate[std::string(default_candidate)];
  for (const auto& [candidate, ran] : by_candidate) {
    if (ran.size() != descriptors.size() || usual.size() != descriptors.size()) continue;
    double sum = 0;
    for (const auto& [descriptor, trial] : ran) {
      sum += std::log(static_cast<double>(trial->cycles) / static_cast<double>(usual.at(descriptor)->cycles));
    }
    decision.scores.push_back({candidate, std::exp(sum / static_cast<double>(ran.size()))});
  }
  std::ranges::stable_sort(decision.scores, {}, &Score::ratio);
  if (usual.empty()) return decision;
  decision.before = decision.chosen = choice_of(usual.begin()->second->kernel);
  decision.candidate = default_candidate;
  if (decision.scores.empty() || decision.scores.front().ratio >= 1 - (margin / 100)) return decision;
  decision.candidate = decision.scores.front().candidate;
  decision.chosen = choice_of(by_candidate[decision.candidate].begin()->second->kernel);
  return decision;
}

}  // namespace

std::string_view name_of(QueryRows rows) {
  // In the order of attention_forward::all_query_rows; the file that is written does not compile with other names.
  constexpr std::array<std::string_view, std::size(attention_forward::all_query_rows)> names = {"up_to_32", "up_to_64",
                                                                                                "up_to_255", "more"};
  return names[static_cast<std::size_t>(rows)];
}

std::string to_text(const Choice& choice) {
  return fmt::format("{}, {} rows{}", choice.pipeline, choice.tile_queries,
                     choice.ladder.empty() ? "" : ", ladder " + choice.ladder);
}

std::vector<Decision> decide(const std::vector<Task>& tasks, const std::vector<Trial>& trials, double margin) {
  std::vector<std::string> targets;
  for (const Task& task : tasks) {
    if (std::ranges::find(targets, task.target) == targets.end()) targets.push_back(task.target);
  }
  std::ranges::sort(targets);
  std::vector<Decision> decisions;
  for (const std::string& target : targets) {
    for (const QueryRows rows : attention_forward::all_query_rows) {
      std::set<std::string> descriptors;
      for (const Task& task : tasks) {
        if (task.target == target && rows_of(task) == rows) descriptors.insert(task.problem.text);
      }
      if (descriptors.empty()) continue;
      Decision decision = decide_one(target, rows, descriptors, trials, margin);
      if (!decision.chosen.pipeline.empty()) decisions.push_back(std::move(decision));
    }
  }
  return decisions;
}

std::string defaults_file(const std::vector<Decision>& decisions) {
  std::string text =
      "// Made by `wavejit tune`, from what the clock of the simulated GPU predicts (docs/tune.md); a test compares. "
      "Which\n"
      "// pipeline, query rows of a workgroup and ladder a target prefers for how many query rows. Pairs that do not "
      "stand "
      "here\n"
      "// go by the target's abilities.\n";
  for (const Decision& decision : decisions) text += entry(decision) + "\n";
  return text;
}

std::vector<std::string> contradictions(const std::vector<Decision>& decisions, const std::string& file) {
  std::vector<std::string> all;
  for (const Decision& decision : decisions) {
    if (("\n" + file).contains("\n" + entry(decision) + "\n")) continue;
    all.push_back(fmt::format("{} with queries of {} rows: {} was found best", decision.target, name_of(decision.rows),
                              to_text(decision.chosen)));
  }
  return all;
}

std::string table(const std::vector<Decision>& decisions, const std::vector<Trial>& trials) {
  std::string text = fmt::format("{:<8} {:<40} {:>12} {:>9} {:>7}  {}\n", "target", "candidate", "cycles", "default",
                                 "busy", "descriptor");
  std::map<std::pair<std::string, std::string>, double> usual;
  for (const Trial& trial : trials) {
    if (trial.candidate == default_candidate)
      usual[{trial.target, trial.descriptor}] = static_cast<double>(trial.cycles);
  }
  for (const Trial& trial : trials) {
    if (trial.kernel.empty()) {
      text += fmt::format("{:<8} {:<40} {:>12} {:>9} {:>7}  {}: {}\n", trial.target, trial.candidate, "refused", "", "",
                          trial.descriptor, trial.refused);
      continue;
    }
    const double before = usual[{trial.target, trial.descriptor}];
    text +=
        fmt::format("{:<8} {:<40} {:>12} {:>9} {:>6.1f}%  {}\n", trial.target, trial.candidate, trial.cycles,
                    before == 0 ? "" : fmt::format("{:+.1f}%", 100 * (static_cast<double>(trial.cycles) / before - 1)),
                    100 * trial.steady_matrix_busy, trial.descriptor);
  }
  text += "\nPredicted, not measured: docs/timing-model.md says how far off the clock was.\n";
  for (const Decision& decision : decisions) {
    text +=
        fmt::format("{}, queries of {} rows: {}", decision.target, name_of(decision.rows), to_text(decision.chosen));
    text += decision.candidate == default_candidate ? ": the default stays"
                                                    : fmt::format(" instead of {}", to_text(decision.before));
    if (!decision.scores.empty())
      text += fmt::format("; best of {} candidates: {} at {:+.1f}%", decision.scores.size(),
                          decision.scores.front().candidate, 100 * (decision.scores.front().ratio - 1));
    text += "\n";
  }
  return text;
}

std::string to_json(const std::vector<Decision>& decisions, const std::vector<Trial>& trials, double margin) {
  using Json = nlohmann::json;
  Json json = {
      {"predicted", true}, {"margin_percent", margin}, {"trials", Json::array()}, {"decisions", Json::array()}};
  for (const Trial& trial : trials) json["trials"].push_back(Json::parse(to_line(trial)));
  for (const Decision& decision : decisions) {
    Json scores = Json::array();
    for (const Score& score : decision.scores)
      scores.push_back({{"candidate", score.candidate}, {"ratio", score.ratio}});
    json["decisions"].push_back({{"target", decision.target},
                                 {"query_rows", name_of(decision.rows)},
                                 {"pipeline", decision.chosen.pipeline},
                                 {"tile_queries", decision.chosen.tile_queries},
                                 {"ladder", decision.chosen.ladder},
                                 {"default_pipeline", decision.before.pipeline},
                                 {"default_tile_queries", decision.before.tile_queries},
                                 {"default_ladder", decision.before.ladder},
                                 {"candidate", decision.candidate},
                                 {"descriptors", decision.descriptors},
                                 {"scores", scores}});
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace wavejit::tools::tune
