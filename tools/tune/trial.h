// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One descriptor on one target with one candidate: what the simulated GPU's clock predicts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tools/exit_code.h"
#include "tools/tuning.h"

namespace wavejit::tools::tune {

struct Task {
  std::string target;
  std::shared_ptr<const Problem> problem;
  Candidate candidate;
};

struct Trial {
  std::string target;
  std::string descriptor;
  std::string candidate;  // its text
  std::string version;    // of this program: rows of another one are not taken over
  std::string kernel;     // its spec; empty: there is none
  std::string refused;    // why not
  std::uint64_t cycles = 0;
  std::string doubt;              // why the cycles may say nothing; empty: no reason is known
  double steady_matrix_busy = 0;  // of the longest kernel of the call, 0 to 1
  bool same_task(const Trial& other) const {
    return target == other.target && descriptor == other.descriptor && candidate == other.candidate &&
           version == other.version;
  }
};
// One line of JSON, and back; nothing when it is none.
std::string to_line(const Trial& trial);
std::optional<Trial> parse_line(const std::string& line);

Trial blank_trial(const Task& task);
// Only sampled workgroups run. What a kernel cannot be made for is a trial with a reason; anything else that goes wrong
// is a failure.
Result<Trial> run_trial(const Tuning& tuning, const Task& task, std::uint32_t simulator_threads);

// All tasks, in `jobs` processes side by side; `finished` hears of each as it ends, and can stop by a failure.
Result<void> run_tasks(const Tuning& tuning, const std::vector<Task>& tasks, int jobs,
                       const std::function<Result<void>(std::size_t index, const Trial& trial)>& finished);

}  // namespace wavejit::tools::tune
