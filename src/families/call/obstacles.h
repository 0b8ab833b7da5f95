// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which words of a refused problem stand in the way, and what would do. Nobody lists that: one word at a time is
// changed, and the family's own rules are asked whether they take the problem so.
//
//   head dim 256 with softcap has no kernel on gfx942; leave softcap out, or use head dim 192/128, 128 or 64
//
// Cold: a call comes here when it has no kernel, and only then.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "families/call/failure.h"

namespace wavejit::families {

// A shape's code with a word changed.
using ChangeOfCode = std::function<std::uint64_t(std::uint64_t)>;

struct Change {
  std::string value;  // "128"; empty: the word is left out
  ChangeOfCode made;
  // A change that fills a gap is named only if no nearer one was, on the same side of the problem's own value.
  enum class Side : std::uint8_t { below, above };
  Side side = Side::below;
  bool fills_gap = false;
};

// A word that a problem asks for, with all that makes no sense without it.
struct ProblemWord {
  std::string said;     // "softcap", "head dim 256", "a cache in e4m3"
  std::string_view of;  // what is left out, or stands before a value: "softcap", "head dim", "a cache in"
  // Without it, or with a value that as good as every kernel has.
  ChangeOfCode without;
  // What it may be instead, nearest first.
  std::vector<Change> changes;
};

struct RefusedProblem {
  std::uint64_t code = 0;
  // In the order in which people are to read them.
  std::span<const ProblemWord> words;
  // The sentence of the rule that refuses such a problem, "<reason>; accepted: <list>"; nothing: it has a kernel.
  std::function<std::optional<std::string>(std::uint64_t code)> refusal;
  std::string_view target;
};

// The most words that a refusal names, and values of one of them.
inline constexpr std::size_t most_words_in_the_way = 3;
inline constexpr std::size_t most_values_told = 4;

// Which words have no kernel together, which change of one of them has one, or else which changes of two or more, made
// together, and the rule's reason. Nothing: no change helps.
[[gnu::cold]] std::optional<std::string> tell_obstacles(const RefusedProblem& problem);

// A failure that says so, where there is something to say.
[[gnu::cold]] Failure with_obstacles(const RefusedProblem& problem, Failure failure);

// Before a rule's reason, where it is another sentence.
inline constexpr std::string_view before_reason = "; reason: ";

// The words of a refused problem as its family lists them, with changes of a `Shape`, which is the code that they make.
template <typename Shape>
class ProblemWords {
 public:
  explicit ProblemWords(std::uint64_t code) : shape(shape_of(code)) {}

  const Shape shape;

  // A word that may be left out.
  template <typename Without>
  void add(bool asked, const std::string& said, std::string_view of, Without without) {
    add_other(asked, said, of, {}, without);
  }
  // One that has a value, in whose place `other` stands without it.
  template <typename Without>
  void add_other(bool asked, const std::string& said, std::string_view of, const std::string& other, Without without) {
    if (!asked) return;
    words_.push_back({.said = said, .of = of, .without = on_codes(without), .changes = {}});
    words_.back().changes.push_back({.value = other, .made = on_codes(without)});
  }
  // One whose every value is told by `add_value`; `least`: the one that as good as every kernel has.
  template <typename Least>
  void add_choice(const std::string& said, std::string_view of, Least least) {
    words_.push_back({.said = said, .of = of, .without = on_codes(least), .changes = {}});
  }
  // Another value of the last word, where it was asked: further away than those before.
  template <typename Made>
  void add_value(bool asked, const std::string& value, Made made, Change::Side side = Change::Side::below,
                 bool fills_gap = false) {
    if (asked)
      words_.back().changes.push_back({.value = value, .made = on_codes(made), .side = side, .fills_gap = fills_gap});
  }

  std::span<const ProblemWord> all() const { return words_; }

  static Shape shape_of(std::uint64_t code) {
    if constexpr (requires { Shape::of_code(code); }) {
      return Shape::of_code(code);
    } else {
      return Shape::of(code);
    }
  }
  static std::uint64_t code_of(const Shape& shape) {
    if constexpr (requires { shape.code(); }) {
      return shape.code();
    } else {
      return shape.shape().code;
    }
  }

 private:
  template <typename Made>
  static ChangeOfCode on_codes(Made made) {
    return [made](std::uint64_t code) {
      Shape changed = shape_of(code);
      made(changed);
      return code_of(changed);
    };
  }

  std::vector<ProblemWord> words_;
};

}  // namespace wavejit::families
