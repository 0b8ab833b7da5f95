// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A subject run on a simulated GPU that keeps time: what its launches would take, and a piece of that time.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tools/profile/subject.h"

namespace wavejit::tools {

struct Prediction {
  std::string subject;
  std::string settings;
  bool warm = false;  // launches found in caches what equal ones before would have left
  std::string device_name;
  std::string target;
  std::string kernel_spec;  // of a problem
  std::string key;
  std::uint64_t workgroups_run = 0;
  std::uint64_t workgroups = 0;  // of all launches
  std::vector<nlohmann::json> launches;
  std::string timeline;  // of the longest launch, Chrome's trace format

  // The launch that takes longest; null if none was timed.
  const nlohmann::json* longest() const;
  // Sum of all launches.
  std::uint64_t cycles() const;
};

// Only the workgroups that the clock looks at run, so results are not there. Fails where nothing was launched or
// nothing could be timed. `timeline_cycles`: how long a piece is kept; 0: none. `caches`: what launches find there.
enum class Caches : std::uint8_t { cold, warm };
Result<Prediction> predict(const Subject& subject, std::uint64_t timeline_cycles, Caches caches = Caches::cold);

// Empty, or why this setting of the command line means nothing to the kernel that ran.
std::string without_setting(const Prediction& prediction, const std::string& name);

std::string prediction_text(const Prediction& prediction);
nlohmann::json prediction_json(const Prediction& prediction);

}  // namespace wavejit::tools
