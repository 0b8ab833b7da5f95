// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention/program/cache_bytes.h"

#include <algorithm>

namespace wavejit::attention::program {

namespace {

// Rows of Q, K or V with their sequence and kv head: token · heads + head.
struct ScaledRows {
  std::int64_t heads = 1;
  std::int64_t group = 1;   // heads of a kv head
  std::int64_t length = 1;  // rows of a batch, where they are not packed
  bool packed = false;
  std::vector<std::int64_t> firsts = {};  // tokens; NOLINT(readability-redundant-member-init)

  std::int64_t kv_head_of(std::int64_t row) const { return row % heads / group; }
  std::int64_t batch_of(std::int64_t row) const {
    const std::int64_t token = row / heads;
    return packed ? std::ranges::upper_bound(firsts, token) - firsts.begin() - 1 : token / length;
  }
};

// Integers reach as far as numbers do.
float step_of(const Experiment& problem) { return problem.cache_dtype == WAVEJIT_INT8 ? 1.0F / 32 : 1.0F; }

}  // namespace

std::vector<float> cache_scales_of(const Experiment& problem, Operand operand) {
  if (problem.cache_scales == Extent::none || problem.token_scales()) return {};
  std::vector<float> scales;
  const float step = step_of(problem);
  for (std::int64_t batch = 0; batch < problem.scale_batches(); ++batch)
    for (std::int64_t head = 0; head < problem.scale_heads(); ++head) {
      const auto place = static_cast<float>(((batch * 3) + head) % 4);
      scales.push_back(step * (operand == Operand::k   ? 0.75F + (0.125F * place)
                               : operand == Operand::v ? 1.5F - (0.25F * place)
                                                       : 1.25F - (0.1875F * place)));
    }
  return scales;
}

// Few bits, so that an integer times its scale is a number of f32.
std::vector<float> integer_scales_of(const Experiment& problem, Operand operand) {
  if (!problem.integers || (problem.half_scores && !problem.token_scales())) return {};
  const Placement rows = operand == Operand::q ? queries_of(problem) : keys_of(problem);
  std::vector<float> scales;
  const std::int64_t count = problem.token_scales() ? rows.rows() : rows.heads;
  scales.reserve(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i)
    scales.push_back((1 + (0.125F * static_cast<float>((i + (operand == Operand::k ? 3 : 0)) % 7))) / 32);
  return scales;
}

namespace {

Inputs integers_of(const Experiment& problem, Inputs inputs) {
  // What rocMLIR's sweeps have: small integers, which count as they are.
  constexpr float whole_step = 0.5F;
  inputs.keep_in_integers(problem.half_scores ? whole_step : 0,
                          [of_q = integer_scales_of(problem, Operand::q), of_k = integer_scales_of(problem, Operand::k),
                           by_token = problem.token_scales(), query_heads = problem.query_heads,
                           kv_heads = problem.kv_heads](Operand operand, std::int64_t row) {
                            const std::vector<float>& scales = operand == Operand::q ? of_q : of_k;
                            if (scales.empty()) return 1.0F;
                            const std::int64_t heads = operand == Operand::q ? query_heads : kv_heads;
                            return scales[static_cast<std::size_t>(by_token ? row : row % heads)];
                          });
  return inputs;
}

}  // namespace

float token_scale_of(const Experiment& problem, Operand operand, std::int64_t token, std::int64_t head) {
  constexpr std::int64_t steps = 16;
  const auto place = static_cast<float>(((token * (operand == Operand::k ? 5 : 3)) + (head * 7)) % steps);
  return step_of(problem) * (operand == Operand::k ? 0.5F + (0.0625F * place) : 1.5F - (0.0625F * place));
}

Inputs inputs_of(const Experiment& problem) {
  Inputs inputs(problem.type, problem.inputs, problem.seed);
  if (problem.integers) return integers_of(problem, std::move(inputs));
  const auto type = tools::byte_type_of(problem.cache_dtype);
  if (!type) return inputs;
  if (problem.token_scales()) {
    inputs.keep_in_bytes(*type, [problem](Operand operand, std::int64_t row) {
      return token_scale_of(problem, operand, row / problem.kv_heads, row % problem.kv_heads);
    });
    return inputs;
  }
  // Tokens are counted through the batch.
  ScaledRows keys{.heads = problem.kv_heads, .group = 1, .length = problem.key_length, .packed = problem.packed_keys()};
  ScaledRows queries{.heads = problem.query_heads,
                     .group = problem.group(),
                     .length = problem.query_length,
                     .packed = problem.packed_queries()};
  for (const Sequence& sequence : sequences_of(problem)) {
    keys.firsts.push_back(sequence.first_key - sequence.padding);
    queries.firsts.push_back(sequence.first_query);
  }
  inputs.keep_in_bytes(
      *type,
      [of_q = cache_scales_of(problem, Operand::q), of_k = cache_scales_of(problem, Operand::k),
       of_v = cache_scales_of(problem, Operand::v), keys = std::move(keys), queries = std::move(queries),
       heads = problem.scale_heads(), batches = problem.scale_batches()](Operand operand, std::int64_t row) {
        const std::vector<float>& scales = operand == Operand::q ? of_q : operand == Operand::k ? of_k : of_v;
        if (scales.empty()) return 1.0F;
        const ScaledRows& rows = operand == Operand::q ? queries : keys;
        const std::int64_t batch = batches == 1 ? 0 : rows.batch_of(row);
        return scales[static_cast<std::size_t>((batch * heads) + (heads == 1 ? 0 : rows.kv_head_of(row)))];
      },
      problem.byte_queries);
  return inputs;
}

}  // namespace wavejit::attention::program
