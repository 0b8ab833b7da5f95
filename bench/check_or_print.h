// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What programs do with the page that they write: print it, or compare it with the file that was committed.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>

namespace wavejit::bench {

// The exit code. `file`: null prints. `command` writes the file anew.
inline int check_or_print(const std::string& text, const char* file, const char* command) {
  if (file == nullptr) {
    std::fputs(text.c_str(), stdout);
    return 0;
  }
  std::ostringstream known;
  known << std::ifstream(file).rdbuf();
  if (known.str() == text) return 0;
  fmt::print(stderr, "{} is not what it would be today; {} writes it anew. Today:\n{}", file, command, text);
  return 1;
}

}  // namespace wavejit::bench
