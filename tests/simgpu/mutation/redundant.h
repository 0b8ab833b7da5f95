// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Mutations that nobody can notice: redundant_counts.txt has them, redundant.txt and not_run.txt say why. Every kernel's
// mutants are held against these lists.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "mutation.h"

namespace wavejit::tests {

struct Outcome {
  std::vector<std::string> checks;  // that reported something
  std::string first;                // the first report
  bool differs = false;             // a result, in any bit, or bytes around it
  bool caught() const { return !checks.empty() || differs; }
};

// How far to go: some of every kernel, or every mutation, and then the list must be exact.
struct Extent {
  bool all_of_them = false;
  bool prints = false;
  std::string journal;  // folder; empty: none
  std::string only;     // changes whose names have these words, and lines of the list that have; "listed": those listed
};
Extent& extent();
// Reads --all, --print, --journal=<folder> and --only=<words> off a program's arguments; the exit code of what is not
// understood.
int read_extent(int argc, char** argv);

struct Kernel {
  std::string name;  // as the list has it
  std::vector<Mutation> mutations;
  std::function<bool(std::uint32_t offset)> runs;  // whether any problem runs the instruction
  std::function<Outcome(const std::vector<std::byte>& code_object)> run;
};
// GoogleTest failures for mutations that are neither noticed nor listed, and for lines of the list that are not so.
void expect_noticed(const Kernel& kernel);

}  // namespace wavejit::tests
