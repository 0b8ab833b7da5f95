// From trials to defaults: which pipeline, query rows of a workgroup and ladder each target prefers for how many query
// rows, and the file that says so.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "templates/attention_forward/call/parameters.h"
#include "tools/tune/trial.h"

namespace wavejit::tools::tune {

// "up_to_32": the enumerator's.
std::string_view name_of(attention_forward::QueryRows rows);

// What the templates read, out of a kernel that ran.
struct Choice {
  std::string pipeline;
  int tile_queries = 0;
  std::string ladder;  // empty: the pipeline has none
  bool operator==(const Choice&) const = default;
};
std::string to_text(const Choice& choice);  // "dualwave, 256 rows, ladder standard"

struct Score {
  std::string candidate;
  double ratio = 0;  // cycles ÷ those of the default, geometric mean over the descriptors
};
struct Decision {
  std::string target;
  attention_forward::QueryRows rows = attention_forward::QueryRows::more;
  Choice chosen;
  Choice before;              // the default
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
