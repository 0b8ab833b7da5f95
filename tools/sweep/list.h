// The lines of a sweep: a file's, or the published list.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tools/exit_code.h"
#include "tools/sweep/problem.h"

namespace wavejit::tools::sweep {

struct Line {
  std::size_t number = 0;  // in its file, from 1
  std::string text;        // without comment and blanks around
};

// Lines of a file, "-" for standard input; blank lines and what follows a '#' are for people.
Result<std::vector<Line>> read_list(const std::string& path);

// Every shape of the published tests (FlyDSL's forward matrix: dense, split, tail, packed and unequal) × head dim 64,
// 128 × bf16, fp16 × non-causal, causal, with LSE, inputs uniform in (−1, 1) and seed 123 as they are there.
std::vector<Line> published_list();

// One line that will run.
struct Case {
  std::size_t line = 0;
  Problem problem;
};
// A line that will not, and why: bad ones are errors, unsupported ones are set aside.
struct Refused {
  std::size_t line = 0;
  std::string text;
  Failure why;
};
struct Cases {
  std::vector<Case> good;
  std::vector<Refused> bad;
  std::vector<Refused> unsupported;
};
Cases parse_lines(const std::vector<Line>& lines);

}  // namespace wavejit::tools::sweep
