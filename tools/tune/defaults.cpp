// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/tune/defaults.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

namespace wavejit::tools::tune {
namespace {

constexpr std::string_view default_candidate = "default";

Decision decide_one(const Tuning& tuning, const std::string& target, const std::string& group,
                    const std::set<std::string>& descriptors, const std::vector<Trial>& trials, double margin) {
  Decision decision;
  decision.target = target;
  decision.group = group;
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
  const auto choice_of = [&](const Trial& trial) {
    return tuning.choice_of(
        {.target = target, .group = group, .candidate = trial.candidate, .kernel_spec = trial.kernel});
  };
  decision.before = decision.chosen = choice_of(*usual.begin()->second);
  decision.candidate = default_candidate;
  if (decision.scores.empty() || decision.scores.front().ratio >= 1 - (margin / 100)) return decision;
  decision.candidate = decision.scores.front().candidate;
  decision.chosen = choice_of(*by_candidate[decision.candidate].begin()->second);
  return decision;
}

}  // namespace

std::vector<Decision> decide(const Tuning& tuning, const std::vector<Task>& tasks, const std::vector<Trial>& trials,
                             double margin) {
  std::vector<std::string> targets;
  for (const Task& task : tasks) {
    if (std::ranges::find(targets, task.target) == targets.end()) targets.push_back(task.target);
  }
  std::ranges::sort(targets);
  std::vector<Decision> decisions;
  for (const std::string& target : targets) {
    for (const std::string& group : tuning.groups()) {
      std::set<std::string> descriptors;
      for (const Task& task : tasks) {
        if (task.target == target && tuning.group_of(*task.problem) == group) descriptors.insert(task.problem->text());
      }
      if (descriptors.empty()) continue;
      Decision decision = decide_one(tuning, target, group, descriptors, trials, margin);
      if (!decision.chosen.text.empty()) decisions.push_back(std::move(decision));
    }
  }
  return decisions;
}

std::string defaults_file(const Tuning& tuning, const std::vector<Decision>& decisions) {
  std::string text = tuning.table_comment();
  for (const Decision& decision : decisions)
    text += tuning.table_row(decision.target, decision.group, decision.chosen) + "\n";
  return text;
}

std::vector<std::string> contradictions(const Tuning& tuning, const std::vector<Decision>& decisions,
                                        const std::string& file) {
  std::vector<std::string> all;
  for (const Decision& decision : decisions) {
    if (("\n" + file).contains("\n" + tuning.table_row(decision.target, decision.group, decision.chosen) + "\n"))
      continue;
    all.push_back(fmt::format("{} with {}: {} was found best", decision.target, tuning.group_text(decision.group),
                              decision.chosen.text));
  }
  return all;
}

std::string table(const Tuning& tuning, const std::vector<Decision>& decisions, const std::vector<Trial>& trials) {
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
  for (const Trial& trial : trials)
    if (!trial.doubt.empty())
      text +=
          fmt::format("doubt: {} with {} on {}: {}\n", trial.descriptor, trial.candidate, trial.target, trial.doubt);
  text += "\nPredicted, not measured: docs/timing-model.md says how far off the clock was.\n";
  for (const Decision& decision : decisions) {
    text += fmt::format("{}, {}: {}", decision.target, tuning.group_text(decision.group), decision.chosen.text);
    text += decision.candidate == default_candidate ? ": the default stays, for none saves more than --margin"
                                                    : fmt::format(" instead of {}", decision.before.text);
    if (!decision.scores.empty())
      text += fmt::format("; best of {} candidates: {} at {:+.1f}%", decision.scores.size(),
                          decision.scores.front().candidate, 100 * (decision.scores.front().ratio - 1));
    text += "\n";
  }
  return text;
}

std::string to_json(const Tuning& tuning, const std::vector<Decision>& decisions, const std::vector<Trial>& trials,
                    double margin) {
  using Json = nlohmann::json;
  Json json = {
      {"predicted", true}, {"margin_percent", margin}, {"trials", Json::array()}, {"decisions", Json::array()}};
  for (const Trial& trial : trials) json["trials"].push_back(Json::parse(to_line(trial)));
  for (const Decision& decision : decisions) {
    Json scores = Json::array();
    for (const Score& score : decision.scores)
      scores.push_back({{"candidate", score.candidate}, {"ratio", score.ratio}});
    Json told = {{"target", decision.target},
                 {std::string(tuning.group_field()), decision.group},
                 {"candidate", decision.candidate},
                 {"descriptors", decision.descriptors},
                 {"scores", scores}};
    for (const auto& [name, value] : decision.chosen.fields) told[name] = value;
    for (const auto& [name, value] : decision.before.fields) told["default_" + name] = value;
    json["decisions"].push_back(std::move(told));
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace wavejit::tools::tune
