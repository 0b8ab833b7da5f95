// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention/program/modifiers.h"

namespace wavejit::attention::program {

namespace {

// Row i is that of the modifier with the number i.
constexpr std::array<ProgramModifier, modifier_count> program_rows = {{
    {.modifier = Modifier::softcap,
     .given = Given::number,
     .help = "scores become X * tanh(score / X)",
     .enter = [](ScoreRules& rules, double value) { rules.softcap = value; },
     .of_head = nullptr},
    {.modifier = Modifier::bias,
     .given = Given::scores,
     .help = "added to the scores [batch or 1, heads or 1, length of queries, length of keys], rounded to --dtype",
     .enter = nullptr,
     .of_head = nullptr},
    {.modifier = Modifier::alibi,
     .given = Given::heads,
     .help = "ALiBi slopes [heads] or [batch, heads], float32",
     .enter = [](ScoreRules& rules, double value) { rules.slope = value; },
     .of_head = [](const Inputs& inputs, std::int64_t batch, std::int64_t head,
                   std::int64_t heads) { return inputs.slope(batch, head, heads); }},
    {.modifier = Modifier::sink,
     .given = Given::heads,
     .help = "one more logit for every head [heads], float32",
     .enter = [](ScoreRules& rules, double value) { rules.sink = value; },
     .of_head = nullptr},
}};
static_assert([] {
  for (std::size_t i = 0; i < modifier_count; ++i)
    if (program_rows[i].modifier != static_cast<Modifier>(i)) return false;
  return true;
}());

}  // namespace

const std::array<ProgramModifier, modifier_count>& program_modifiers() { return program_rows; }

HeadValues head_values(const Experiment& problem, const Inputs& inputs) {
  HeadValues values;
  for (const ProgramModifier& row : program_rows) {
    if (row.given != Given::heads || !problem.has(row.modifier)) continue;
    for (std::int64_t batch = 0; batch < problem.batches_of(row.modifier); ++batch) {
      for (std::int64_t head = 0; head < problem.query_heads; ++head)
        values[index_of(row.modifier)].push_back(
            row.of_head == nullptr ? 0 : row.of_head(inputs, batch, head, problem.query_heads));
    }
  }
  return values;
}

void enter_modifiers(ScoreRules& rules, const Experiment& problem, const HeadValues& values, std::int64_t batch,
                     std::int64_t head) {
  for (const ProgramModifier& row : program_modifiers()) {
    const std::vector<float>& of_heads = values[index_of(row.modifier)];
    if (row.given == Given::number) {
      row.enter(rules, static_cast<double>(problem.of(row.modifier).number));
    } else if (row.given == Given::heads && !of_heads.empty()) {
      const std::int64_t of_batch = problem.batches_of(row.modifier) == 1 ? 0 : batch;
      row.enter(rules, static_cast<double>(of_heads[static_cast<std::size_t>(of_batch * problem.query_heads + head)]));
    }
  }
}

}  // namespace wavejit::attention::program
