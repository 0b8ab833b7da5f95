// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Names of parameters on the command line, and candidates as text.
#pragma once

#include <string>
#include <vector>

#include "tools/exit_code.h"
#include "tools/tuning.h"

namespace wavejit::tools::tune {

// "pipeline, tile_queries, …": those that can vary.
std::string known_parameters(const Tuning& tuning);
// Names separated by commas; the error names the word that is none.
Result<std::vector<std::string>> read_parameters(const Tuning& tuning, const std::string& text);
// For people: every parameter, and what it can be on each of these targets.
std::string list_parameters(const Tuning& tuning, const std::vector<std::string>& targets);

}  // namespace wavejit::tools::tune
