// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The lines of a sweep: a file's, or what the families list.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "tools/descriptor_list.h"
#include "tools/exit_code.h"
#include "tools/family.h"

namespace wavejit::tools::sweep {

// What every family lists, one family after the other.
std::vector<Line> usual_list();

// One line that will run.
struct Entry {
  std::size_t line = 0;
  std::shared_ptr<const Problem> problem;
};
// A line that will not, and why: bad ones are errors, unsupported ones are set aside.
struct Refused {
  std::size_t line = 0;
  std::string text;
  Failure why;
};
struct Cases {
  std::vector<Entry> good;
  std::vector<Refused> bad;
  std::vector<Refused> unsupported;
};
Cases parse_lines(const std::vector<Line>& lines);

}  // namespace wavejit::tools::sweep
