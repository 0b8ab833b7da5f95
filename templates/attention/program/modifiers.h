// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The modifiers as the program's tools give them: a row a modifier, beside that of kernel/modifiers.h.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "templates/attention/kernel/modifiers.h"
#include "templates/attention/program/experiment.h"
#include "templates/attention/program/inputs.h"
#include "templates/attention/program/reference.h"

namespace wavejit::attention::program {

// One number; an array over queries and keys; a number a head.
enum class Given : std::uint8_t { number, scores, heads };

struct ProgramModifier {
  Modifier modifier;
  Given given;
  const char* help;  // of the option of `run`
  // Puts the number, or a head's, into the rules of the float64 reference. Null: an array, HeadRows::bias.
  void (*enter)(ScoreRules& rules, double value);
  // What a sweep gives a head. Null: 0, in whose place the reference puts a logit that it chooses (Reference::choose_logits).
  float (*of_head)(const Inputs& inputs, std::int64_t batch, std::int64_t head, std::int64_t heads);
};

// In the order of the help, which is that of the enumeration.
const std::array<ProgramModifier, modifier_count>& program_modifiers();

constexpr std::size_t index_of(Modifier modifier) { return static_cast<std::size_t>(modifier); }

// The numbers of those that are given a number a head: [batches or 1][heads]. Empty: the problem has none.
using HeadValues = std::array<std::vector<float>, modifier_count>;
// A number for each head of each of them; where the reference chooses, 0 stands until it has.
HeadValues head_values(const Experiment& problem, const Inputs& inputs);

// What a head's scores go through, as numbers. A modifier whose `values` are empty is left out.
void enter_modifiers(ScoreRules& rules, const Experiment& problem, const HeadValues& values, std::int64_t batch,
                     std::int64_t head);

}  // namespace wavejit::attention::program
