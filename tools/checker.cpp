// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/checker.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace wavejit::tools {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

// Half the distance between neighbours of the format at this magnitude.
double half_ulp(const StorageFormat& format, double magnitude) {
  const int exponent = magnitude == 0 ? format.smallest_exponent : std::ilogb(magnitude);
  return std::ldexp(1.0, std::max(exponent, format.smallest_exponent) - format.significant_bits);
}

// The largest relative error of a rounded normal number.
double unit_roundoff(const StorageFormat& format) { return std::ldexp(1.0, -format.significant_bits); }

// 0 for equal infinities and for two NaNs; infinite where one of the two is not finite and the other differs.
double error_between(double exact, double result) {
  if (std::isnan(exact) && std::isnan(result)) return 0;
  if (std::isfinite(exact) && std::isfinite(result)) return std::fabs(exact - result);
  return exact == result ? 0 : infinity;
}

// The relative error of a weight: its rounding to the storage type, and what float32 leaves of the score below it.
double error_of_weights(const StorageFormat& format, double score) {
  const double of_score = score_roundings * unit_roundoff(fp32_format) * (std::isfinite(score) ? score : 0);
  return unit_roundoff(format) + std::min(of_score, most_of_score);
}

// The error of the weights counts Σ p·|v|, and O is rounded once. In a sum of rounded weights it counts O once more.
double allowed_of_element(const StorageFormat& weights, const StorageFormat& output, const ExactRow& row,
                          std::size_t dim) {
  const double exact = row.output[dim];
  const double counted = row.magnitude[dim] + (weights.summed ? std::fabs(exact) : 0);
  const double of_weights = error_of_weights(weights, row.score) * counted;
  const double allowed = of_weights + half_ulp(output, std::fabs(exact) + of_weights) + element_slack;
  return std::isfinite(allowed) ? allowed : 0;
}

}  // namespace

std::string Difference::text() const {
  std::string row = fmt::format("sequence {}, token {}, head {}", place.sequence, place.token, place.head);
  switch (of) {
    case Of::element:
      return fmt::format("{}, dim {}: {:.9g} instead of {:.9g}, bound {:.3g}", row, dim, result, exact, bound);
    case Of::row_rms:
      return fmt::format("{}: RMS error {:.3g} of the row, {:.3g} expected, bound {:.3g}", row, result, exact, bound);
    case Of::row_cosine:
      return fmt::format("{}: cosine {:.9f} of the row, bound {:.9f}", row, result, bound);
    case Of::lse:
      return fmt::format("{}, LSE: {:.9g} instead of {:.9g}, bound {:.3g}", row, result, exact, bound);
  }
  return row;
}

bool Comparison::passed() const { return wrong().empty(); }

std::string Comparison::wrong() const {
  std::string text;
  const auto add = [&](const std::string& what) { text += (text.empty() ? "" : "; ") + what; };
  if (elements_beyond > 0) add(fmt::format("{} elements out of bound", elements_beyond));
  if (rows_beyond > 0) add(fmt::format("{} rows out of bound by RMS or cosine", rows_beyond));
  if (lse_beyond > 0) add(fmt::format("{} LSE rows out of bound", lse_beyond));
  if (first) add("first difference at " + first->text());
  if (rows > 0 && compared == 0 && not_finite_exact > 0) add("nothing finite was compared");
  if (rows > 0 && rows == rows_beyond_limit) add("nothing was compared");
  if (const std::string remark = remarks(); !text.empty() && !remark.empty()) add(remark);
  return text;
}

std::string Comparison::remarks() const {
  std::string text;
  if (not_finite_exact != 0 || not_finite_result != 0)
    text = fmt::format("not finite: {} of the exact answer, {} of the result", not_finite_exact, not_finite_result);
  if (rows_beyond_limit != 0) {
    text += fmt::format(
        "{}{} of {} rows not compared, because they have scores of 2^28 and beyond, which are promised "
        "no softmax (|scale * q*k * log2 e|; wavejit.h, \"Scores\")",
        text.empty() ? "" : "; ", rows_beyond_limit, rows);
  }
  return text;
}

std::string Comparison::text() const {
  std::string text = fmt::format("max error {:.3g}, {:.0f} % of its bound", max_error, 100 * of_bound);
  if (rms) text += fmt::format("; row RMS {:.2f} of the expected, limit {}", *rms, row_rms_limit);
  text += fmt::format("; least cosine {:.9f}", least_cosine);
  if (worst_lse) text += fmt::format("; LSE error {:.3g}", lse_error);
  if (const std::string remark = remarks(); !remark.empty()) text += "; " + remark;
  if (const std::string what = wrong(); !what.empty()) text += ": " + what;
  return text;
}

double Comparison::relative_rms() const {
  if (squared_errors == 0) return 0;
  return std::sqrt(squared_errors / static_cast<double>(compared)) / largest;
}

void Checker::beyond(const Difference& difference) {
  if (!comparison_.first) comparison_.first = difference;
}

void Checker::row(const RowPlace& place, const ExactRow& exact, const ResultRow& result) {
  ++comparison_.rows;
  if (exact.largest >= score_limit) {
    ++comparison_.rows_beyond_limit;
    return;
  }
  double squared_errors = 0;
  double of_output = 0;  // Σ half ulp² of the elements
  double exact_squares = 0;
  double result_squares = 0;
  double dot = 0;
  std::int64_t finite = 0;
  for (std::size_t dim = 0; dim < exact.output.size(); ++dim) {
    const double wanted = exact.output[dim];
    const auto got = static_cast<double>(result.output[dim]);
    const double error = error_between(wanted, got);
    const double bound = std::isfinite(wanted) ? allowed_of_element(weights_, output_, exact, dim) : 0;
    const Difference difference{.of = Difference::Of::element,
                                .place = place,
                                .dim = static_cast<std::int64_t>(dim),
                                .exact = wanted,
                                .result = got,
                                .bound = bound};
    comparison_.not_finite_exact += static_cast<std::int64_t>(!std::isfinite(wanted));
    comparison_.not_finite_result += static_cast<std::int64_t>(!std::isfinite(got));
    comparison_.max_error = std::max(comparison_.max_error, error);
    if (!(error <= bound)) {
      ++comparison_.elements_beyond;
      beyond(difference);
    }
    const double part = error == 0 ? 0 : error / bound;
    if (part > comparison_.of_bound || !comparison_.worst) {
      comparison_.of_bound = part;
      comparison_.worst = difference;
    }
    if (!std::isfinite(wanted)) continue;
    ++comparison_.compared;
    if (!std::isfinite(got)) continue;  // out of bound already
    ++finite;
    squared_errors += error * error;
    comparison_.largest = std::max({comparison_.largest, std::fabs(wanted), std::fabs(got)});
    of_output += half_ulp(output_, std::fabs(wanted)) * half_ulp(output_, std::fabs(wanted));
    exact_squares += wanted * wanted;
    result_squares += got * got;
    dot += wanted * got;
  }
  comparison_.squared_errors += squared_errors;
  if (finite > 0) {
    // A rounding error is uniform within half an ulp: its RMS is a √3rd of that. Weights of different size round
    // independently and give Σ p²·|v|²; weights of one size round alike and give the length of O.
    const double u = error_of_weights(weights_, exact.score);
    const double of_weights = u * u * std::max(std::isfinite(exact.spread) ? exact.spread : 0, exact_squares);
    const double squared = (of_output + of_weights) / 3;
    const auto count = static_cast<double>(finite);
    const double expected = std::sqrt(squared / count);
    const double rms = std::sqrt(squared_errors / count);
    comparison_.rms = std::max(comparison_.rms.value_or(0), rms / expected);
    const double bound = row_rms_limit * expected;
    bool good = true;
    if (!(rms <= bound)) {
      good = false;
      beyond({.of = Difference::Of::row_rms, .place = place, .exact = expected, .result = rms, .bound = bound});
    }
    if (exact_squares > 0) {
      const double cosine = result_squares > 0 ? dot / std::sqrt(exact_squares * result_squares) : 0;
      comparison_.least_cosine = std::min(comparison_.least_cosine, cosine);
      // An error of this length at right angles to the row.
      const double sine = row_rms_limit * std::sqrt(squared / exact_squares);
      const double least = sine < 1 ? std::sqrt(1 - sine * sine) : -1;
      if (!(cosine >= least - 1e-12)) {
        good = false;
        beyond({.of = Difference::Of::row_cosine, .place = place, .exact = 1, .result = cosine, .bound = least});
      }
    }
    comparison_.rows_beyond += static_cast<std::int64_t>(!good);
  }
  if (result.lse) lse(place, exact, *result.lse);
}

void Checker::lse(const RowPlace& place, const ExactRow& exact, float result) {
  const auto got = static_cast<double>(result);
  const bool without_keys = exact.lse == -infinity;
  comparison_.not_finite_exact += static_cast<std::int64_t>(!std::isfinite(exact.lse) && !without_keys);
  comparison_.not_finite_result += static_cast<std::int64_t>(!std::isfinite(got) && got != -infinity);
  const double error = error_between(exact.lse, got);
  const double score = std::isfinite(exact.score) ? exact.score : 0;
  // The logarithm of a sum of weights, each off by as much as rounding may be.
  const double of_weights = weights_.summed ? -std::log1p(-unit_roundoff(weights_) * exact.mass) : 0;
  const double bound = std::isfinite(exact.lse) ? lse_slack + half_ulp(fp32_format, std::fabs(exact.lse)) +
                                                      score_roundings * unit_roundoff(fp32_format) * score + of_weights
                                                : 0;
  const Difference difference{
      .of = Difference::Of::lse, .place = place, .exact = exact.lse, .result = got, .bound = bound};
  comparison_.lse_error = std::max(comparison_.lse_error, error);
  const double part = error == 0 ? 0 : error / bound;
  if (part > comparison_.lse_of_bound || !comparison_.worst_lse) {
    comparison_.lse_of_bound = part;
    comparison_.worst_lse = difference;
  }
  if (error <= bound) return;
  ++comparison_.lse_beyond;
  beyond(difference);
}

void BoundChecker::row(const RowPlace& place, std::span<const double> exact, std::span<const double> bounds,
                       std::span<const float> result) {
  ++comparison_.rows;
  double exact_squares = 0;
  double result_squares = 0;
  double dot = 0;
  for (std::size_t dim = 0; dim < exact.size(); ++dim) {
    const double wanted = exact[dim];
    const auto got = static_cast<double>(result[dim]);
    element({.of = Difference::Of::element,
             .place = place,
             .dim = static_cast<std::int64_t>(dim),
             .exact = wanted,
             .result = got,
             .bound = bounds[dim]});
    if (!std::isfinite(wanted) || !std::isfinite(got)) continue;
    exact_squares += wanted * wanted;
    result_squares += got * got;
    dot += wanted * got;
  }
  if (exact_squares == 0) return;
  const double cosine = result_squares > 0 ? dot / std::sqrt(exact_squares * result_squares) : 0;
  comparison_.least_cosine = std::min(comparison_.least_cosine, cosine);
}

void BoundChecker::element(const Difference& difference) {
  const bool finite = std::isfinite(difference.exact);
  comparison_.compared += finite ? 1 : 0;
  comparison_.not_finite_exact += finite ? 0 : 1;
  comparison_.not_finite_result += std::isfinite(difference.result) ? 0 : 1;
  const double error = error_between(difference.exact, difference.result);
  comparison_.max_error = std::max(comparison_.max_error, error);
  const double of_bound = error == 0 ? 0 : error / difference.bound;
  if (of_bound >= comparison_.of_bound) {
    comparison_.of_bound = of_bound;
    comparison_.worst = difference;
  }
  if (of_bound <= 1) return;
  ++comparison_.elements_beyond;
  if (!comparison_.first) comparison_.first = difference;
}

}  // namespace wavejit::tools
