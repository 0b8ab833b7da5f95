#include "templates/attention_forward/program/reference.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace wavejit::attention_forward::program {

namespace {

struct Sizes {
  std::size_t batch, queries, keys, heads, kv_heads, head_dim;

  explicit Sizes(const AttentionProblem& p)
      : batch(static_cast<std::size_t>(p.q->shape[0])),
        queries(static_cast<std::size_t>(p.q->shape[1])),
        keys(static_cast<std::size_t>(p.k->shape[1])),
        heads(static_cast<std::size_t>(p.q->shape[2])),
        kv_heads(static_cast<std::size_t>(p.k->shape[2])),
        head_dim(static_cast<std::size_t>(p.q->shape[3])) {}
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

void attend_head(const AttentionProblem& problem, std::size_t batch, std::size_t head, ExactAttention& exact) {
  const Sizes s(problem);
  const std::size_t kv_head = head / (s.heads / s.kv_heads);
  const auto query = head_of(*problem.q, problem.type, batch, head);
  const auto keys = head_of(*problem.k, problem.type, batch, kv_head);
  const auto values = head_of(*problem.v, problem.type, batch, kv_head);
  std::vector<std::int64_t> rows(s.queries);
  for (std::size_t row = 0; row < s.queries; ++row) rows[row] = static_cast<std::int64_t>(row);
  ScoreRules rules;
  rules.scale = static_cast<double>(problem.scale);
  // Aligned bottom-right: the last query sees every key.
  rules.position =
      problem.causal_prefix.value_or(static_cast<std::int64_t>(s.keys) - static_cast<std::int64_t>(s.queries));
  if (problem.causal) rules.diagonal = rules.position;
  if (problem.window) {
    rules.window_left = problem.window_left;
    rules.window_right = problem.window_right;
  }
  rules.softcap = static_cast<double>(problem.softcap);
  if (!problem.slopes.empty()) {
    const bool of_batch = problem.slopes.size() > s.heads;
    rules.slope = static_cast<double>(problem.slopes[of_batch ? batch * s.heads + head : head]);
  }
  if (!problem.sinks.empty()) rules.sink = static_cast<double>(problem.sinks[head]);
  HeadRows wanted{.rules = rules,
                  .head_dim_qk = s.head_dim,
                  .head_dim_v = s.head_dim,
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
  std::ranges::copy(answer.lse, &exact.lse[(batch * s.heads + head) * s.queries]);
  for (std::size_t row = 0; row < s.queries; ++row) {
    const std::size_t to = ((batch * s.queries + row) * s.heads + head) * s.head_dim;
    std::copy_n(&answer.output[row * s.head_dim], s.head_dim, &exact.output[to]);
    std::copy_n(&answer.magnitude[row * s.head_dim], s.head_dim, &exact.magnitude[to]);
  }
}

}  // namespace

double allowed_by_roundings(HalfType type, double exact, double magnitude) {
  const double of_weights = half_ulp(type, 1.0) * magnitude;
  return of_weights + half_ulp(type, std::fabs(exact) + of_weights) + 1e-5;
}

ExactAttention exact_attention(const AttentionProblem& problem) {
  const Sizes s(problem);
  ExactAttention exact;
  exact.output.resize(s.batch * s.queries * s.heads * s.head_dim);
  exact.lse.resize(s.batch * s.heads * s.queries);
  exact.magnitude.resize(exact.output.size());
  on_all_cores(s.batch * s.heads, [&](std::size_t i) { attend_head(problem, i / s.heads, i % s.heads, exact); });
  return exact;
}

Accuracy compare_output(const AttentionProblem& problem, const ExactAttention& exact,
                        const std::vector<float>& output) {
  const Sizes s(problem);
  Accuracy accuracy;
  double largest = 0;
  std::size_t worst = 0;
  for (std::size_t i = 0; i < output.size(); ++i) {
    const double error = error_between(exact.output[i], output[i]);
    if (error > accuracy.max_error) {
      accuracy.max_error = error;
      worst = i;
    }
    if (std::isfinite(exact.output[i])) {
      largest = std::max(largest, std::fabs(exact.output[i]));
      const double nearest = rounded(problem.type, exact.output[i]);
      if (std::isfinite(nearest))
        accuracy.rounding_error = std::max(accuracy.rounding_error, std::fabs(nearest - exact.output[i]));
    }
  }
  const double usual = 2 * std::max(accuracy.rounding_error, half_ulp(problem.type, largest)) + 1e-5;
  const auto allowed = [&](std::size_t i) {
    const double roundings = allowed_by_roundings(problem.type, exact.output[i], exact.magnitude[i]);
    return std::max(usual, std::isfinite(roundings) ? roundings : 0.0);
  };
  accuracy.passed = true;
  for (std::size_t i = 0; i < output.size(); ++i) {
    if (!(error_between(exact.output[i], output[i]) <= allowed(i))) accuracy.passed = false;
  }
  accuracy.bound = output.empty() ? usual : allowed(worst);
  const std::size_t row = worst / s.head_dim;
  accuracy.where = fmt::format("[{}, {}, {}, {}]", row / s.heads / s.queries, row / s.heads % s.queries, row % s.heads,
                               worst % s.head_dim);
  return accuracy;
}

Accuracy compare_lse(const AttentionProblem& problem, const ExactAttention& exact, const std::vector<float>& lse) {
  const Sizes s(problem);
  Accuracy accuracy;
  accuracy.bound = 1e-4;
  std::size_t worst = 0;
  for (std::size_t i = 0; i < lse.size(); ++i) {
    const double error = error_between(exact.lse[i], lse[i]);
    if (error > accuracy.max_error) {
      accuracy.max_error = error;
      worst = i;
    }
    if (std::isfinite(exact.lse[i])) {
      accuracy.rounding_error = std::max(
          accuracy.rounding_error, std::fabs(static_cast<double>(static_cast<float>(exact.lse[i])) - exact.lse[i]));
    }
  }
  accuracy.passed = accuracy.max_error <= accuracy.bound;
  accuracy.where =
      fmt::format("[{}, {}, {}]", worst / s.queries / s.heads, worst / s.queries % s.heads, worst % s.queries);
  return accuracy;
}

}  // namespace wavejit::attention_forward::program
