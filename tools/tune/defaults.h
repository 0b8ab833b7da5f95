// From trials to defaults: which pipeline each target prefers for how many query rows, and the file that says so.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/tune/trial.h"

namespace wavejit::tools::tune {

// Lengths of a query that the templates tell apart; 0: any longer one.
struct Rows {
  const char* name = "";  // of the templates' enumerator
  std::int64_t most = 0;
};
const std::vector<Rows>& all_rows();
const Rows& rows_of(std::int64_t query_length);

struct Score {
  std::string candidate;
  double ratio = 0;  // cycles ÷ those of the default, geometric mean over the descriptors
};
struct Decision {
  std::string target;
  const Rows* rows = nullptr;
  std::string pipeline;       // chosen
  std::string before;         // the default's
  std::string candidate;      // chosen, whole
  std::vector<Score> scores;  // best first; those that ran on every descriptor
  int descriptors = 0;
};
// The default stays unless another one takes more than `margin` percent fewer cycles: less than the clock's own error
// would say nothing.
std::vector<Decision> decide(const std::vector<Task>& tasks, const std::vector<Trial>& trials, double margin);

// A C++ table that templates include. Same trials, same bytes.
std::string defaults_file(const std::vector<Decision>& decisions);
// A line a pair of target and rows of `file` that `decisions` contradict.
std::vector<std::string> contradictions(const std::vector<Decision>& decisions, const std::string& file);

std::string table(const std::vector<Decision>& decisions, const std::vector<Trial>& trials);
std::string to_json(const std::vector<Decision>& decisions, const std::vector<Trial>& trials, double margin);

}  // namespace wavejit::tools::tune
