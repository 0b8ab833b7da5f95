// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention/program/reference.h"

#include <algorithm>

namespace wavejit::attention::program {

namespace {

struct Sizes {
  std::size_t batch, queries, keys, heads, kv_heads, head_dim_qk, head_dim_v;

  explicit Sizes(const AttentionArrays& p)
      : batch(static_cast<std::size_t>(p.q->shape[0])),
        queries(static_cast<std::size_t>(p.q->shape[1])),
        keys(static_cast<std::size_t>(p.k->shape[1])),
        heads(static_cast<std::size_t>(p.q->shape[2])),
        kv_heads(static_cast<std::size_t>(p.k->shape[2])),
        head_dim_qk(static_cast<std::size_t>(p.q->shape[3])),
        head_dim_v(static_cast<std::size_t>(p.v->shape[3])) {}
};

// One head's rows: [length][head dim].
std::vector<float> head_of(const Array& array, HalfType type, std::size_t batch, std::size_t head) {
  const auto length = static_cast<std::size_t>(array.shape[1]);
  const auto heads = static_cast<std::size_t>(array.shape[2]);
  const auto head_dim = static_cast<std::size_t>(array.shape[3]);
  std::vector<float> values(length * head_dim);
  for (std::size_t row = 0; row < length; ++row) {
    const std::uint16_t* source = &array.values[((batch * length + row) * heads + head) * head_dim];
    for (std::size_t d = 0; d < head_dim; ++d) values[row * head_dim + d] = decode(type, source[d]);
  }
  return values;
}

void attend_head(const AttentionArrays& problem, std::size_t batch, std::size_t head, ExactAttention& exact) {
  const Sizes s(problem);
  const std::size_t kv_head = head / (s.heads / s.kv_heads);
  const auto query = head_of(*problem.q, problem.type, batch, head);
  const auto keys = head_of(*problem.k, problem.type, batch, kv_head);
  const auto values = head_of(*problem.v, problem.type, batch, kv_head);
  std::vector<std::int64_t> rows(s.queries);
  for (std::size_t row = 0; row < s.queries; ++row) rows[row] = static_cast<std::int64_t>(row);
  wavejit_masking mask = problem.mask;
  if (!problem.causal_flags.empty() && problem.causal_flags[batch] == 0) mask.bits &= ~WAVEJIT_MASK_CAUSAL;
  ScoreRules rules = rules_of(mask, static_cast<std::int64_t>(s.queries), static_cast<std::int64_t>(s.keys));
  rules.scale = static_cast<double>(problem.scale);
  rules.softcap = static_cast<double>(problem.softcap);
  if (!problem.slopes.empty()) {
    const bool of_batch = problem.slopes.size() > s.heads;
    rules.slope = static_cast<double>(problem.slopes[of_batch ? batch * s.heads + head : head]);
  }
  if (!problem.sinks.empty()) rules.sink = static_cast<double>(problem.sinks[head]);
  HeadRows wanted{.rules = rules,
                  .head_dim_qk = s.head_dim_qk,
                  .head_dim_v = s.head_dim_v,
                  .keys = s.keys,
                  .rows = rows,
                  .q = query,
                  .k = keys,
                  .v = values,
                  .bias = {}};
  if (problem.bias != nullptr) {
    const Shape& shape = problem.bias->shape;
    const std::size_t first =
        (shape[0] > 1 ? batch : 0) * static_cast<std::size_t>(shape[1]) + (shape[1] > 1 ? head : 0);
    wanted.bias = [&problem, first, &s](std::int64_t row, std::int64_t key) {
      const std::size_t at =
          (first * s.queries + static_cast<std::size_t>(row)) * s.keys + static_cast<std::size_t>(key);
      return static_cast<double>(decode(problem.type, problem.bias->values[at]));
    };
  }
  const ExactRows answer = exact_rows(wanted);
  const std::size_t first_row = (batch * s.heads + head) * s.queries;
  std::ranges::copy(answer.lse, &exact.lse[first_row]);
  std::ranges::copy(answer.spread, &exact.spread[first_row]);
  std::ranges::copy(answer.score, &exact.score[first_row]);
  std::ranges::copy(answer.largest, &exact.largest[first_row]);
  for (std::size_t row = 0; row < s.queries; ++row) {
    const std::size_t to = ((batch * s.queries + row) * s.heads + head) * s.head_dim_v;
    std::copy_n(&answer.output[row * s.head_dim_v], s.head_dim_v, &exact.output[to]);
    std::copy_n(&answer.magnitude[row * s.head_dim_v], s.head_dim_v, &exact.magnitude[to]);
  }
}

}  // namespace

ExactAttention exact_attention(const AttentionArrays& problem) {
  const Sizes s(problem);
  ExactAttention exact;
  exact.output.resize(s.batch * s.queries * s.heads * s.head_dim_v);
  exact.lse.resize(s.batch * s.heads * s.queries);
  exact.magnitude.resize(exact.output.size());
  exact.spread.resize(exact.lse.size());
  exact.score.resize(exact.lse.size());
  exact.largest.resize(exact.lse.size());
  on_all_cores(s.batch * s.heads, [&](std::size_t i) { attend_head(problem, i / s.heads, i % s.heads, exact); });
  return exact;
}

StorageFormat storage_format(HalfType type) { return type == HalfType::fp16 ? fp16_format : bf16_format; }

Comparison compare_rows(const AttentionArrays& problem, const ExactAttention& exact, std::span<const float> output,
                        std::span<const float> lse) {
  const Sizes s(problem);
  Checker checker(storage_format(problem.type), problem.output_fp32 ? fp32_format : storage_format(problem.type));
  for (std::size_t batch = 0; batch < s.batch; ++batch) {
    for (std::size_t query = 0; query < s.queries; ++query) {
      for (std::size_t head = 0; head < s.heads; ++head) {
        const std::size_t at = ((batch * s.queries + query) * s.heads + head) * s.head_dim_v;
        const std::size_t row = (batch * s.heads + head) * s.queries + query;
        checker.row(
            {.sequence = static_cast<std::int64_t>(batch),
             .token = static_cast<std::int64_t>(query),
             .head = static_cast<std::int64_t>(head)},
            {.output = std::span(exact.output).subspan(at, s.head_dim_v),
             .magnitude = std::span(exact.magnitude).subspan(at, s.head_dim_v),
             .spread = exact.spread[row],
             .score = exact.score[row],
             .lse = exact.lse[row],
             .largest = exact.largest[row]},
            {.output = output.subspan(at, s.head_dim_v), .lse = lse.empty() ? std::nullopt : std::optional(lse[row])});
      }
    }
  }
  return checker.comparison();
}

}  // namespace wavejit::attention::program
