// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What `wavejit tune` asks of a family: which parameters its kernels have, what each can be on a target, and how the
// best of them are written down. Trials, scores and reports are the command's (tools/tune/).
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/family.h"

namespace wavejit::tools {

using NamedValues = std::vector<std::pair<std::string, std::string>>;

// A value for each parameter that is asked for, in the order of the parameters; the library chooses the others.
struct Candidate {
  NamedValues values;

  // "" for a parameter that the library chooses.
  std::string_view value(std::string_view parameter) const {
    for (const auto& [name, value] : values)
      if (name == parameter) return value;
    return {};
  }
  bool operator==(const Candidate&) const = default;
};
// "pipeline=dualwave stagger=off"; "default" when nothing is asked for.
std::string to_text(const Candidate& candidate);

// A trial that ran.
struct Tried {
  std::string_view target;
  std::string_view group;
  std::string_view candidate;    // its text
  std::string_view kernel_spec;  // of the call's first kernel
};

// What the templates read, out of a trial.
struct Choice {
  std::string text;  // "dualwave, 256 rows, ladder standard"; empty: the trial cannot be read
  // For the report: {"tile_queries", 256}. The default before gets the same names with "default_" in front.
  std::vector<std::pair<std::string, nlohmann::json>> fields;
  bool operator==(const Choice&) const = default;
};

class Tuning {
 public:
  Tuning() = default;
  Tuning(const Tuning&) = delete;
  Tuning& operator=(const Tuning&) = delete;
  virtual ~Tuning() = default;

  struct Parameter {
    std::string_view name;
    std::string_view help;
  };
  virtual std::vector<Parameter> parameters() const = 0;
  // Those that vary when nobody says otherwise, with commas between.
  virtual std::string_view usual_parameters() const = 0;
  // What a parameter can be on a target, for people: whole lines.
  virtual std::string values(std::string_view parameter, const std::string& target) const = 0;

  // The default first, then every combination of the named parameters' values, each once. What the target cannot do
  // stands alone, so that the report says why.
  virtual std::vector<Candidate> candidates(const std::vector<std::string>& parameters, const std::string& target,
                                            const Problem& problem) const = 0;
  // Options of the engine that make it so, by their names on the command line: {"pipeline", "auto xcd_swizzle=off"}.
  virtual NamedValues engine_options(const Candidate& candidate) const = 0;

  // Problems of one group share a default: a group has one row of the table. In the table's order.
  virtual std::vector<std::string> groups() const = 0;
  virtual std::string group_of(const Problem& problem) const = 0;
  // For reports: "queries of up_to_32 rows"; and the name of the field in JSON: "query_rows".
  virtual std::string group_text(const std::string& group) const = 0;
  virtual std::string_view group_field() const = 0;

  virtual Choice choice_of(const Tried& tried) const = 0;
  // The comment on top of the table, and a row of it.
  virtual std::string table_comment() const = 0;
  virtual std::string table_row(const std::string& target, const std::string& group, const Choice& choice) const = 0;
};

}  // namespace wavejit::tools
