// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The words of a kernel spec, one row for each thing that a spec says, in the order in which they are printed. From
// these rows come a spec's text and its parser, the lists of what is accepted, a kernel's name, and how a problem's
// shape is told. To add a word, add a field to KernelSpec, a row here, a rule (rules.cpp), and its emission; what a
// problem asks for has a row in call/shape.h as well.
#pragma once

#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "templates/attention_forward/kernel/spec.h"

namespace wavejit::attention_forward {

struct WordRow {
  std::string_view accepted;      // in lists: "lse", "o=fp32", "tile=", "d<n>[/<n>]"
  std::string_view missing = {};  // what a spec without it lacks; empty: it may be left out
  bool of_problem = false;        // a problem asks for it; else the route has chosen it
  // A flag: `accepted` is the word. It is printed where the field is as the word says.
  bool KernelSpec::* flag = nullptr;
  bool said = true;
  std::string_view otherwise = {};  // of "key=value": what has no word
  std::string_view name = {};       // in the kernel's name
  // A modifier that changes code: `accepted` is its word, and its name.
  std::optional<Modifier> modifier = std::nullopt;
  // Everything else. Empty texts are not printed.
  std::string (*text)(const KernelSpec&) = nullptr;
  std::string (*name_of)(const KernelSpec&) = nullptr;
  // Nothing: not this row's word. An error: what is accepted in its place.
  using Taken = std::optional<std::expected<void, std::string>>;
  Taken (*take)(KernelSpec&, std::string_view word) = nullptr;
};

const std::vector<WordRow>& words();

// As the row has it in the spec; empty: it has nothing to say.
std::string text_of(const WordRow& row, const KernelSpec& spec);
std::string name_of(const WordRow& row, const KernelSpec& spec);
WordRow::Taken take(const WordRow& row, KernelSpec& spec, std::string_view word);

// What no row takes: all that are accepted, or, of "key=value", the keys.
std::string accepted_instead(std::string_view word);

// What a problem asks for, in words: "fp16 d128 causal lse".
std::string problem_text(const KernelSpec& spec);
// "attention_forward_fp16_d128_causal_lse_128x64_gfx950"
std::string kernel_name(const KernelSpec& spec);

}  // namespace wavejit::attention_forward
