// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What users ask for by name, whether or not there are kernels for it, and the questions that lead to one. `wavejit
// variants` prints it; routes come from the library.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tools/exit_code.h"

namespace wavejit::tools {

struct Variant {
  std::string_view name;   // a word for the command line: "gqa"
  std::string_view title;  // "Grouped queries (GQA)"
  std::string_view meaning;
  // A descriptor with {type} and {dim} in it, and {format} of 8 bits; empty: not there yet.
  std::string_view descriptor;
  std::string_view instead = {};          // of one that is not there: what does for it today
  std::string_view question = {};         // a yes leads here before a question of Variants::decision_tree is asked
  std::array<std::string_view, 2> peers;  // what others have, in the order of Variants::peers
};

// A row or column of the grid of layouts by modifiers: how people call it, and its words in a descriptor.
struct GridWord {
  std::string title;
  std::string words;
};

// "Do keys lie in the pages of a cache? → paged"
struct Branch {
  std::string_view question;
  std::string_view variant;  // a name
};

class Variants {
 public:
  Variants() = default;
  Variants(const Variants&) = delete;
  Variants& operator=(const Variants&) = delete;
  virtual ~Variants() = default;

  // Names and dates of those that Variant::peers tells of.
  virtual std::vector<std::string> peers() const = 0;
  virtual std::vector<std::string> types() const = 0;
  virtual std::vector<std::string> head_dims() const = 0;
  // What {format} is on a target.
  virtual std::string format_of(const std::string& target) const = 0;
  // Descriptor of the grid, with {layout}, {modifier} and {type}.
  virtual std::string grid_descriptor() const = 0;
  virtual std::vector<GridWord> layouts() const = 0;
  virtual std::vector<GridWord> modifiers() const = 0;
  // Questions in their order, behind those that variants bring themselves.
  virtual std::span<const Branch> decision_tree() const = 0;
};

}  // namespace wavejit::tools
