#include "templates/attention_forward/program/judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

namespace wavejit::attention_forward::program {

bool WrittenRow::operator==(const WrittenRow& other) const {
  return output == other.output && std::bit_cast<std::uint32_t>(lse) == std::bit_cast<std::uint32_t>(other.lse);
}

Band band_of(const Problem& problem) {
  if (problem.type == HalfType::bf16) {
    return {.limit = 0.005,
            .regime = "bf16",
            .reason = "8 significant bits: rounding P and O once each leaves 0.002 to 0.004"};
  }
  return {};
}

Figures judge(const Problem& problem, const Reference& reference, const Rows& rows, const WrittenRows& written) {
  // The usual bound belongs to the whole answer: first over the exact rows alone.
  double largest = 0;
  double rounding_error = 0;
  for (const auto& [head, numbers] : rows) {
    for (const std::int64_t row : numbers) {
      for (const double exact : reference.at(head, row).output) {
        if (!std::isfinite(exact)) continue;
        largest = std::max(largest, std::fabs(exact));
        const double nearest = rounded(problem.type, exact);
        if (std::isfinite(nearest)) rounding_error = std::max(rounding_error, std::fabs(nearest - exact));
      }
    }
  }
  const double usual = 2 * std::max(rounding_error, half_ulp(problem.type, largest)) + 1e-5;

  Figures figures;
  double squared_errors = 0;
  double squares = 0;
  for (const auto& [head, numbers] : rows) {
    const auto& of_head = written.at(head);
    for (const std::int64_t row : numbers) {
      const ExactRow& exact = reference.at(head, row);
      const WrittenRow& got = of_head.at(row);
      double dot = 0;
      double exact_squares = 0;
      double got_squares = 0;
      for (std::size_t d = 0; d < exact.output.size(); ++d) {
        const float value = decode(problem.type, got.output[d]);
        const double error = error_between(exact.output[d], value);
        const double roundings = allowed_by_roundings(problem.type, exact.output[d], exact.magnitude[d]);
        const double allowed = std::max(usual, std::isfinite(roundings) ? roundings : 0.0);
        if (!(error <= allowed)) ++figures.out_of_bound;
        if (error > figures.max_abs || figures.where.empty()) {
          figures.max_abs = error;
          figures.bound = allowed;
          figures.where = fmt::format("[{}, {}, {}, {}]", head.sequence, row, head.head, d);
        }
        squared_errors += error * error;
        dot += exact.output[d] * static_cast<double>(value);
        exact_squares += exact.output[d] * exact.output[d];
        got_squares += static_cast<double>(value) * static_cast<double>(value);
      }
      squares += exact_squares;
      if (exact_squares > 0) {
        const double cosine = got_squares > 0 ? dot / std::sqrt(exact_squares * got_squares) : 0;
        // A NaN stays.
        if (!(cosine >= figures.least_cosine)) figures.least_cosine = cosine;
      }
      if (problem.lse) {
        if (std::isinf(exact.lse) != std::isinf(got.lse)) {
          ++figures.wrong_infinities;
        } else {
          const double error = error_between(exact.lse, got.lse);
          figures.lse_error = std::max(figures.lse_error, std::isnan(error) ? INFINITY : error);
        }
      }
      ++figures.rows;
    }
  }
  figures.relative_rms = squared_errors == 0 ? 0 : std::sqrt(squared_errors / squares);
  return figures;
}

}  // namespace wavejit::attention_forward::program
