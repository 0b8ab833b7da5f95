// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a sweep tells: a table for people, CSV and JSON for programs.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "tools/sweep/list.h"
#include "tools/sweep/run_case.h"

namespace wavejit::tools::sweep {

struct Report {
  std::string device_name;
  std::string target;
  std::vector<Outcome> outcomes;
  std::vector<Refused> bad;  // lines that are no problems
  double seconds = 0;
  bool rocmlir_limits = false;  // outcomes were held against them

  std::size_t count(Verdict verdict) const;
  // The problems that were set aside, by reason.
  std::map<std::string, std::size_t> set_aside() const;
};

std::string table_header();
std::string table_row(const Outcome& outcome);
// Counts, reasons, what came closest to its bound.
std::string summary(const Report& report);
std::string to_json(const Report& report);

std::string csv_header();
std::string csv_row(const Outcome& outcome, const Report& report);

}  // namespace wavejit::tools::sweep
