// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A problem of this family as sweep, profile and tune take it: what it runs, wrote and should have written.
#pragma once

#include <memory>
#include <utility>

#include "templates/attention/program/experiment.h"
#include "templates/attention_forward/program/vocabulary.h"
#include "tools/family.h"

namespace wavejit::attention_forward::program {

class ParsedProblem : public tools::Problem {
 public:
  explicit ParsedProblem(Experiment problem) : problem_(std::move(problem)) {}

  const std::string& text() const override { return problem_.text; }
  std::int64_t keys() const override { return problem_.key_length; }
  std::unique_ptr<Case> make_case() const override;

  const Experiment& problem() const { return problem_; }

 private:
  Experiment problem_;
};

}  // namespace wavejit::attention_forward::program
