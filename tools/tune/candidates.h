// What `wavejit tune` may choose from: parameters of the templates that an engine's options set, their values, and the
// combinations that make sense.
#pragma once

#include <string>
#include <vector>

#include "tools/exit_code.h"

namespace wavejit::tools::tune {

// A value a parameter; empty: what the library takes by itself.
struct Candidate {
  std::string pipeline;
  std::string stagger;
  std::string setprio;
  std::string xcd_swizzle;
  bool operator==(const Candidate&) const = default;
};
// "pipeline=dualwave stagger=off"; "default" when everything is.
std::string to_text(const Candidate& candidate);

// "pipeline, stagger, setprio, xcd_swizzle": those that can vary.
std::string known_parameters();
// The default first, then every combination of the named parameters' values, each once. `parameters` separated by
// commas; the error names the word that is none.
Result<std::vector<Candidate>> candidates(const std::string& parameters);

}  // namespace wavejit::tools::tune
