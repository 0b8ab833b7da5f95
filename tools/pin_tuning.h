// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The tuning of a family with one parameter, a pin of its route (Toggles::pins): what is tried, and how problems are
// grouped, by the rows of sequences if the family does not say otherwise. The family says which value a problem has by
// default, what a trial chose, and how the table is written.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/tuning.h"

namespace wavejit::tools {

// The names of a table of values and names.
template <typename Names>
std::vector<std::string> names_in(const Names& table) {
  std::vector<std::string> names;
  names.reserve(table.size());
  for (const auto& [value, name] : table) names.emplace_back(name);
  return names;
}

class PinTuning : public Tuning {
 public:
  // `values`: what the pin can be on all targets.
  PinTuning(std::string_view pin, std::string_view help, std::vector<std::string> values,
            std::vector<std::string> groups)
      : pin_(pin), help_(help), values_(std::move(values)), groups_(std::move(groups)) {}

  std::vector<Parameter> parameters() const final { return {{pin_, help_}}; }
  std::string_view usual_parameters() const final { return pin_; }
  std::string values(std::string_view /*parameter*/, const std::string& target) const final {
    return fmt::format("  {}: {}\n", target, fmt::join(values_on(target), ", "));
  }
  std::vector<Candidate> candidates(const std::vector<std::string>& /*parameters*/, const std::string& target,
                                    const Problem& problem) const final {
    std::vector<Candidate> chosen = {{}};
    const std::string usual = usual_value(target, problem);
    for (const std::string& value : values_on(target))
      if (value != usual) chosen.push_back({.values = {{std::string(pin_), value}}});
    return chosen;
  }
  NamedValues engine_options(const Candidate& candidate) const final {
    const std::string_view value = candidate.value(pin_);
    if (value.empty()) return {};
    return {{"pipeline", fmt::format("auto {}={}", pin_, value)}};
  }
  std::vector<std::string> groups() const final { return groups_; }
  std::string group_text(const std::string& group) const override { return fmt::format("sequences of {} rows", group); }
  std::string_view group_field() const override { return "sequence_rows"; }
  std::string table_comment() const final {
    return "// Made by `wavejit tune`, from what the clock of the simulated GPU predicts (docs/tune.md); a test "
           "compares. " +
           what_rows_say();
  }

 protected:
  virtual std::vector<std::string> values_on(const std::string& /*target*/) const { return values_; }
  virtual std::string usual_value(const std::string& target, const Problem& problem) const = 0;
  // The rest of the table's comment, from its first line on.
  virtual std::string what_rows_say() const = 0;

 private:
  std::string_view pin_;
  std::string_view help_;
  std::vector<std::string> values_;
  std::vector<std::string> groups_;
};

}  // namespace wavejit::tools
