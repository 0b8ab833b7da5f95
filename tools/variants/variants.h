// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a family tells of its variants: those that users ask for by name, whether or not there are kernels for them, and
// the questions that lead to one. `wavejit variants` and `wavejit choose` print it; routes come from the library.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tools/exit_code.h"

namespace wavejit::tools {

struct Variant {
  std::string name;   // a word for the command line: "gqa"
  std::string title;  // "Grouped queries (GQA)"
  std::string meaning;
  // A descriptor with {type} and {dim} in it, and {format} of 8 bits; empty: not there yet.
  std::string descriptor;
  std::string instead;             // of one that is not there: what does for it today
  std::vector<std::string> peers;  // what others have, in the order of Variants::peers
};

// A row or column of the grid of layouts by modifiers: how people call it, and its words in a descriptor.
struct GridWord {
  std::string title;
  std::string words;
};

// "Do keys lie in the pages of a cache? → paged"
struct Branch {
  std::string question;
  std::string variant;  // a name
};

using Answers = std::map<std::string, std::string>;  // by Question::name

struct Question {
  std::string name;  // its option: "head-dim"
  std::string text;  // "Head dim of Q and K, of V and O"
  std::string usual;
  std::vector<std::string> accepted;  // words; empty: `problem` says
  // "" or what is wrong with an answer; null: any of `accepted` is right.
  std::function<std::string(const std::string&)> problem = nullptr;
  // Whether it is asked after these answers; null: always.
  std::function<bool(const Answers&)> is_asked = nullptr;
};

struct ChosenCall {
  std::string variant;  // a name
  std::string descriptor;
  std::string cpp;
  std::string python;
  std::string pytorch;
};

class Variants {
 public:
  Variants() = default;
  Variants(const Variants&) = delete;
  Variants& operator=(const Variants&) = delete;
  virtual ~Variants() = default;

  virtual std::vector<Variant> all() const = 0;
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
  virtual std::vector<Branch> decision_tree() const = 0;
  virtual std::vector<Question> questions() const = 0;
  // Answers to every question that is asked, each of them right by itself.
  virtual Result<ChosenCall> choose(const Answers& answers) const = 0;
};

}  // namespace wavejit::tools
