// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A kernel whose mutations whole calls are to notice.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "called.h"

namespace wavejit::tests {

struct CalledCase {
  std::string name;
  std::string target;
  std::vector<std::string> words;
  Problems problems;
  bool in_soak = false;  // alone: compiling its calls' kernels costs more than a sample says
  std::string pipeline = "auto";
};
// NOLINTNEXTLINE(readability-identifier-naming): as GoogleTest calls it
inline void PrintTo(const CalledCase& which, std::ostream* out) { *out << which.name; }

}  // namespace wavejit::tests
