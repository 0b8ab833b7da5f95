// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What programs do with the page that they write: print it, or compare it with the file that was committed.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <fstream>
#include <span>
#include <sstream>
#include <string>

namespace wavejit::bench {

inline std::string text_of(const char* file) {
  std::ostringstream known;
  known << std::ifstream(file).rdbuf();
  return known.str();
}

// The exit code. `file`: null prints. `command` writes the file anew.
inline int check_or_print(const std::string& text, const char* file, const char* command) {
  if (file == nullptr) {
    std::fputs(text.c_str(), stdout);
    return 0;
  }
  if (text_of(file) == text) return 0;
  fmt::print(stderr, "{} is not what it would be today; {} writes it anew. Today:\n{}", file, command, text);
  return 1;
}

// Some rows alone: each must stand in the file, and there must be one.
inline int check_rows(std::span<const std::string> rows, const char* file, const char* command) {
  const std::string known = text_of(file);
  int code = rows.empty() ? 1 : 0;
  for (const std::string& row : rows) {
    if (known.contains(row)) continue;
    fmt::print(stderr, "{} has no such row; {} writes it anew. Today:\n{}", file, command, row);
    code = 1;
  }
  return code;
}

}  // namespace wavejit::bench
