// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the processes of a program under `wavejit sim` leave: a report each, gathered into one.
#pragma once

#include <string>
#include <vector>

#include "tools/exit_code.h"
#include "tools/sim/child.h"

namespace wavejit::tools {

struct ReportedRun {
  std::vector<std::string> program;
  std::string json;               // the file for all reports; empty: none
  bool fail_on_findings = false;  // code 1 when the program ended well and something was found
  std::string variable;           // which tells a process where its own report goes
};

// Runs the program to its end. Answers what a shell would (child.h), or as above. The file is opened before the program
// starts and is there whole, or not at all.
Result<ExitCode> run_with_reports(const ReportedRun& run);

}  // namespace wavejit::tools
