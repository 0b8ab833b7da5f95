// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/sweep/list.h"

#include <utility>

#include "tools/families.h"

namespace wavejit::tools::sweep {

std::vector<Line> usual_list() {
  std::vector<Line> lines;
  for (const Family* family : all_families())
    for (const std::string& text : family->listed()) lines.push_back({.number = lines.size() + 1, .text = text});
  return lines;
}

Cases parse_lines(const std::vector<Line>& lines) {
  Cases cases;
  for (const Line& line : lines) {
    auto problem = parse_problem(line.text);
    if (problem) {
      cases.good.push_back({.line = line.number, .problem = std::move(*problem)});
    } else {
      auto& refused = problem.error().code == ExitCode::unsupported ? cases.unsupported : cases.bad;
      refused.push_back({.line = line.number, .text = line.text, .why = problem.error()});
    }
  }
  return cases;
}

}  // namespace wavejit::tools::sweep
