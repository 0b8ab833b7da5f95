// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Problem descriptors in a text file: what prebuild and sweep read, and what a running engine's miss log is.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "tools/exit_code.h"

namespace wavejit::tools {

struct Line {
  std::size_t number = 0;  // in its file, from 1
  std::string text;        // without comment and blanks around
};

// Lines of a file, "-" for standard input; blank lines and what follows a '#' are for people.
Result<std::vector<Line>> read_list(const std::string& path);

// "2/3": the second of three parts of a list.
struct Shard {
  int part = 1;
  int parts = 1;
};
std::optional<Shard> parse_shard(const std::string& text);
// For messages: what parse_shard takes.
inline constexpr const char* accepted_shards = "parts such as 1/3 to 3/3";

}  // namespace wavejit::tools
