// What `wavejit tune` may choose from: parameters of the templates, the values that each target and pipeline has, and
// the combinations that make sense. The values come from the templates' own tables.
#pragma once

#include <string>
#include <vector>

#include "templates/attention_forward/call/parameters.h"
#include "tools/exit_code.h"

namespace wavejit::attention_forward::program {

// A value a parameter; empty: what the library takes by itself.
struct Candidate {
  std::string pipeline;
  std::string tile_queries;
  std::string ladder;
  std::string stagger;
  std::string setprio;
  std::string xcd_swizzle;
  bool operator==(const Candidate&) const = default;
};
// "pipeline=dualwave stagger=off"; "default" when everything is.
std::string to_text(const Candidate& candidate);
// Options::pipeline for it: "dualwave", "auto ladder=early"; empty when nothing is asked for.
std::string pipeline_option(const Candidate& candidate);

// "pipeline, tile_queries, …": those that can vary.
std::string known_parameters();
// Names separated by commas; the error names the word that is none.
Result<std::vector<std::string>> read_parameters(const std::string& text);

// Targets are names of the target table. For queries of so many rows: the default first, then every combination of the
// named parameters' values, each once. A pipeline that the target cannot run stands alone, so that the report says why.
std::vector<Candidate> candidates(const std::vector<std::string>& parameters, const std::string& target,
                                  attention_forward::QueryRows rows);

// For people: every parameter, and what it can be on each of these targets.
std::string list_parameters(const std::vector<std::string>& targets);

}  // namespace wavejit::attention_forward::program
