// The lines of a sweep: a file's, or the published list.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tools/descriptor_list.h"
#include "tools/exit_code.h"
#include "templates/attention_forward/program/problem.h"

namespace wavejit::tools::sweep {

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
