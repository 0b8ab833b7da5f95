// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Whether a result of attention is right. Each element, each row and each LSE is held against its own exact value from
// float64, never against another row's. `wavejit run --check`, `wavejit sweep` and the tests all ask here; which faults
// it sees stands in docs/fault-injection.md.
//
//     Checker checker(bf16_format);
//     checker.row({.sequence = 0, .token = 5, .head = 1}, exact, result);
//     if (!checker.comparison().passed()) print(checker.comparison().text());
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace wavejit::tools {

// A type that a kernel rounds weights or results to.
struct StorageFormat {
  int significant_bits;
  int smallest_exponent;  // of a normal number
  bool summed = false;    // of weights: what is added up is what was rounded, too
};
inline constexpr StorageFormat fp16_format{.significant_bits = 11, .smallest_exponent = -14};
inline constexpr StorageFormat bf16_format{.significant_bits = 8, .smallest_exponent = -126};
inline constexpr StorageFormat fp32_format{.significant_bits = 24, .smallest_exponent = -126};
// Weights in e4m3, of which the largest is between 2^7.5 and 2^8.5, and the smallest normal one 2⁻⁶.
inline constexpr StorageFormat e4m3_weights{.significant_bits = 4, .smallest_exponent = -13, .summed = true};

// ---- What is allowed ------------------------------------------------------------------------------------------------

// An element: the rounding of O there, what rounding its weights can amount to, and this for arithmetic in float32.
inline constexpr double element_slack = 1e-5;
// A row: its RMS error in units of the rounding that is expected of it. A row reaches √3 when every rounding of it is
// as bad as can be.
inline constexpr double row_rms_limit = 1.7;
// An LSE: its own rounding to float32, `score_roundings` such roundings of its scores, and this. A score of 256
// products has been rounded 256 times; most of these errors cancel.
inline constexpr double lse_slack = 1e-5;
inline constexpr double score_roundings = 16;
// The bound of a row's weights, however large its scores: from half on a bound would admit the 0 of a row that sees nothing.
inline constexpr double most_of_score = 0.5;
// Scores · log2 e that are promised a softmax, where nothing modifies them (wavejit.h, "Scores"). A row with one beyond
// is counted and not compared.
inline constexpr double score_limit = 0x1p28;

// ---- What is compared -----------------------------------------------------------------------------------------------

// A row's answer in float64: p are its softmax weights, v the values.
struct ExactRow {
  std::span<const double> output;
  std::span<const double> magnitude;  // Σ p·|v| of each element
  double spread = 0;                  // Σ p²·|v|², |v| being the length of a key's value row
  double score = 0;                   // Σ p·|score|, as the softmax sees them, the sink among them
  double lse = 0;
  double largest = 0;  // finite |score · log2 e| of the keys that the row sees; 0 where scores are modified
  double mass = 0;     // of weights that are summed rounded: Σ p, each at least as large as the smallest normal one
};

struct ResultRow {
  std::span<const float> output;
  std::optional<float> lse;  // none: not asked for
};

struct RowPlace {
  std::int64_t sequence = 0;
  std::int64_t token = 0;
  std::int64_t head = 0;
};

// What an element, a row or an LSE was, what it should have been, and how far apart they may be.
struct Difference {
  enum class Of : std::uint8_t { element, row_rms, row_cosine, lse };
  Of of = Of::element;
  RowPlace place;
  std::int64_t dim = 0;  // of an element
  double exact = 0;      // of a row: the expected error; of its cosine: 1
  double result = 0;     // of a row: the RMS error, the cosine
  double bound = 0;      // of result − exact; of a row: of the RMS error, the least cosine

  std::string text() const;
};

// ---- The verdict ----------------------------------------------------------------------------------------------------

struct Comparison {
  std::int64_t rows = 0;
  std::int64_t compared = 0;  // elements that are finite in the exact answer
  // Elements and LSE rows that are NaN or infinite. They must be so on both sides; −∞ as the LSE of a row without keys
  // is a number like any other.
  std::int64_t not_finite_exact = 0;
  std::int64_t not_finite_result = 0;

  std::int64_t rows_beyond_limit = 0;  // of scores: neither compared nor passed

  std::int64_t elements_beyond = 0;
  std::int64_t rows_beyond = 0;  // by RMS or cosine
  std::int64_t lse_beyond = 0;

  double max_error = 0;  // of an element; infinite where one side is not finite and the other differs
  double of_bound = 0;   // the largest error of an element as a share of its bound
  // The largest RMS error of a row in units of what is expected of it; none: nobody knows what is.
  std::optional<double> rms;
  // Over all finite elements: Σ error², and the largest magnitude of either side.
  double squared_errors = 0;
  double largest = 0;
  double least_cosine = 1;  // of a row with its exact row; rows that are exactly 0 do not count
  double lse_error = 0;     // the largest
  double lse_of_bound = 0;

  std::optional<Difference> worst;      // the element of `of_bound`
  std::optional<Difference> worst_lse;  // the LSE of `lse_of_bound`
  std::optional<Difference> first;      // that is beyond its bound, in the order of the rows

  // Nothing is beyond its bound, and something was compared: what is NaN throughout shows nothing, nor do rows whose
  // scores are all beyond their limit.
  bool passed() const;
  // What is wrong, with the first difference; empty: passed.
  std::string wrong() const;
  // What a verdict must not leave out: numbers that are not finite, rows beyond the limit of scores. Often empty.
  std::string remarks() const;
  // Figures in one line.
  std::string text() const;
  // √(Σ error² / elements) in units of the largest element; 0 where all are 0.
  double relative_rms() const;
};

class Checker {
 public:
  explicit Checker(StorageFormat format) : Checker(format, format) {}
  // Where O is not rounded to the type of the weights.
  Checker(StorageFormat weights, StorageFormat output) : weights_(weights), output_(output) {}

  void row(const RowPlace& place, const ExactRow& exact, const ResultRow& result);
  const Comparison& comparison() const { return comparison_; }

 private:
  void lse(const RowPlace& place, const ExactRow& exact, float result);
  void beyond(const Difference& difference);

  StorageFormat weights_;
  StorageFormat output_;
  Comparison comparison_;
};

// Compares answers whose elements each have a bound of their own. What is NaN or infinite must be so on both sides.
class BoundChecker {
 public:
  void row(const RowPlace& place, std::span<const double> exact, std::span<const double> bounds,
           std::span<const float> result);
  const Comparison& comparison() const { return comparison_; }

 private:
  void element(const Difference& difference);

  Comparison comparison_;
};

}  // namespace wavejit::tools
