// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What `wavejit run` has to tell, for people and for programs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tools/checker.h"
#include "wavejit/wavejit.h"

namespace wavejit::tools {

struct RunReport {
  std::string device_name;
  std::string target;
  wavejit_call_report call{};
  // The tool's own steps around the call, in order: "read" … "write".
  std::vector<std::pair<std::string, std::uint64_t>> steps;
  // Repeated calls, if asked for.
  int repeats = 0;
  std::uint64_t median_repeat_ns = 0;  // entry of the call to its return
  std::string last_origin;
  bool repeats_identical = true;
  std::optional<Comparison> comparison;
  std::string cycles;  // of the first call, if asked for: one JSON object a launch and line
  std::vector<std::string> notes;
  std::vector<std::string> written;

  bool passed() const { return repeats_identical && (!comparison || comparison->passed()); }
};

// "compiled", "on disk", "in memory"
std::string origin_text(std::int32_t origin);

std::string to_text(const RunReport& report);
std::string to_json(const RunReport& report);

}  // namespace wavejit::tools
