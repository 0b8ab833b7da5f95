#include "tools/attention_reference.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <thread>

namespace wavejit::tools {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

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

// One head's rows as doubles: [length][head dim], or transposed.
std::vector<double> head_of(const Array& array, HalfType type, std::size_t batch, std::size_t head, bool transposed) {
  const auto length = static_cast<std::size_t>(array.shape[1]);
  const auto heads = static_cast<std::size_t>(array.shape[2]);
  const auto head_dim = static_cast<std::size_t>(array.shape[3]);
  std::vector<double> values(length * head_dim);
  for (std::size_t row = 0; row < length; ++row) {
    const std::uint16_t* source = &array.values[((batch * length + row) * heads + head) * head_dim];
    for (std::size_t d = 0; d < head_dim; ++d) {
      values[transposed ? d * length + row : row * head_dim + d] = decode(type, source[d]);
    }
  }
  return values;
}

// Sums run over keys in the inner loop so that the host vectorises them without reordering a single sum.
void attend_head(const AttentionProblem& problem, std::size_t batch, std::size_t head, ExactAttention& exact) {
  const Sizes s(problem);
  const std::size_t kv_head = head / (s.heads / s.kv_heads);
  const auto query = head_of(*problem.q, problem.type, batch, head, false);
  const auto keys = head_of(*problem.k, problem.type, batch, kv_head, true);
  const auto values = head_of(*problem.v, problem.type, batch, kv_head, false);
  std::vector<double> scores(s.keys);
  std::vector<double> sums(s.head_dim);
  std::vector<double> magnitudes(s.head_dim);
  for (std::size_t row = 0; row < s.queries; ++row) {
    // Aligned bottom-right: the last query sees every key.
    const std::int64_t last = static_cast<std::int64_t>(row + s.keys) - static_cast<std::int64_t>(s.queries);
    const std::size_t visible =
        problem.causal
            ? static_cast<std::size_t>(std::clamp<std::int64_t>(last + 1, 0, static_cast<std::int64_t>(s.keys)))
            : s.keys;
    double& lse = exact.lse[(batch * s.heads + head) * s.queries + row];
    double* output = &exact.output[((batch * s.queries + row) * s.heads + head) * s.head_dim];
    double* magnitude = &exact.magnitude[((batch * s.queries + row) * s.heads + head) * s.head_dim];
    if (visible == 0) {
      lse = -infinity;
      std::fill_n(output, s.head_dim, 0.0);
      std::fill_n(magnitude, s.head_dim, 0.0);
      continue;
    }
    std::fill_n(scores.begin(), visible, 0.0);
    for (std::size_t d = 0; d < s.head_dim; ++d) {
      const double q = query[row * s.head_dim + d];
      const double* k = &keys[d * s.keys];
      for (std::size_t key = 0; key < visible; ++key) scores[key] += q * k[key];
    }
    double maximum = -infinity;
    for (std::size_t key = 0; key < visible; ++key) {
      scores[key] *= static_cast<double>(problem.scale);
      maximum = std::max(maximum, scores[key]);
    }
    double total = 0;
    std::ranges::fill(sums, 0.0);
    std::ranges::fill(magnitudes, 0.0);
    for (std::size_t key = 0; key < visible; ++key) {
      const double weight = std::exp(scores[key] - maximum);
      total += weight;
      const double* v = &values[key * s.head_dim];
      for (std::size_t d = 0; d < s.head_dim; ++d) {
        sums[d] += weight * v[d];
        magnitudes[d] += weight * std::fabs(v[d]);
      }
    }
    lse = maximum + std::log(total);
    for (std::size_t d = 0; d < s.head_dim; ++d) {
      output[d] = sums[d] / total;
      magnitude[d] = magnitudes[d] / total;
    }
  }
}

double error_between(double exact, float got) {
  if (std::isnan(exact) && std::isnan(got)) return 0;
  if (std::isfinite(exact) && std::isfinite(got)) return std::fabs(exact - static_cast<double>(got));
  return exact == static_cast<double>(got) ? 0 : infinity;
}

}  // namespace

ExactAttention exact_attention(const AttentionProblem& problem) {
  const Sizes s(problem);
  ExactAttention exact;
  exact.output.resize(s.batch * s.queries * s.heads * s.head_dim);
  exact.lse.resize(s.batch * s.heads * s.queries);
  exact.magnitude.resize(exact.output.size());
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < s.batch * s.heads; i = next++)
      attend_head(problem, i / s.heads, i % s.heads, exact);
  };
  std::vector<std::jthread> others;
  const std::size_t threads =
      std::min<std::size_t>(std::max(1U, std::thread::hardware_concurrency()), s.batch * s.heads);
  for (std::size_t i = 1; i < threads; ++i) others.emplace_back(work);
  work();
  others.clear();
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
    const double of_weights = half_ulp(problem.type, 1.0) * exact.magnitude[i];
    const double roundings = of_weights + half_ulp(problem.type, std::fabs(exact.output[i]) + of_weights) + 1e-5;
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

}  // namespace wavejit::tools
