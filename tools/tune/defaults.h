// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// From trials to defaults: what each target prefers for each group of problems, and the file that says so.
#pragma once

#include <string>
#include <vector>

#include "tools/tune/trial.h"

namespace wavejit::tools::tune {

struct Score {
  std::string candidate;
  double ratio = 0;  // cycles ÷ those of the default, geometric mean over the descriptors
};
struct Decision {
  std::string target;
  std::string group;
  Choice chosen;
  Choice before;              // the default
  std::string candidate;      // chosen, whole
  std::vector<Score> scores;  // best first; those that ran on every descriptor
  int descriptors = 0;
};
// The default stays unless another candidate takes more than `margin` percent fewer cycles. A margin below the clock's
// own error would decide nothing.
std::vector<Decision> decide(const Tuning& tuning, const std::vector<Task>& tasks, const std::vector<Trial>& trials,
                             double margin);

// A C++ table that templates include. Same trials, same bytes.
std::string defaults_file(const Tuning& tuning, const std::vector<Decision>& decisions);
// A line for each pair of target and group of which `file` says something else than `decisions`.
std::vector<std::string> contradictions(const Tuning& tuning, const std::vector<Decision>& decisions,
                                        const std::string& file);

std::string table(const Tuning& tuning, const std::vector<Decision>& decisions, const std::vector<Trial>& trials);
std::string to_json(const Tuning& tuning, const std::vector<Decision>& decisions, const std::vector<Trial>& trials,
                    double margin);

}  // namespace wavejit::tools::tune
