// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Lines of lists that lead to no kernel, told together where one reason is everybody's: a preset whose head dim a
// target does not have is one sentence, not one a line.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace wavejit::tools {

// Where a descriptor stands: line 3 of "--list served.txt", or descriptor 1 of the command line.
struct Place {
  std::string list;  // empty: the command line
  std::size_t number = 0;
};

class RefusedLines {
 public:
  // `target` empty: the line is no descriptor.
  void add(const Place& place, const std::string& target, const std::string& why);

  // "--preset gemma-2-9b: lines 13 to 20, 23: no kernel for gfx942: head dim 256 needs …", in the order of their first
  // lines.
  std::vector<std::string> texts() const;

 private:
  struct Group {
    std::string list;
    std::string target;
    std::string reason;
    std::vector<std::size_t> numbers;
    std::string whole;  // of the first line: its reason with its own words
  };
  std::vector<Group> groups_;
};

// "no kernel for <the line's words> on gfx942: head dim 256 needs …" without the line's own words; another sentence as
// it stands.
std::string common_part(const std::string& why, const std::string& target);

// "line 3", "lines 3 to 5, 8"
std::string ranges_text(const std::string& one, const std::vector<std::size_t>& numbers);

}  // namespace wavejit::tools
