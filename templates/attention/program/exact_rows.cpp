// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Attention in double for some rows of one head: scores, their maximum, weights, sums; each a pass of its own over the
// stored scores of a few rows. Sums run so that the host vectorises them without reordering any one of them.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include "templates/attention/program/reference.h"

// The inner loops once for any x86-64 and once with 256-bit registers; the loader takes what the machine has.
#if defined(__x86_64__) && defined(__linux__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && \
    !(defined(__has_feature) && (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer)))
#define WAVEJIT_VECTOR_CLONES __attribute__((target_clones("avx2", "default")))
#else
#define WAVEJIT_VECTOR_CLONES
#endif

namespace wavejit::attention::program {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

// Rows and columns whose sums stay in registers, keys whose transposed block stays in the second-level cache, and rows
// whose scores are kept at a time. They divide one another.
constexpr std::size_t register_rows = 4;
constexpr std::size_t register_columns = 8;
constexpr std::size_t key_block = 128;
constexpr std::size_t row_block = 32;

using Sums = std::array<std::array<double, register_columns>, register_rows>;

// scores[r][j] = Σ_d q[r][d] · keys[d][j] for register_rows rows and key_block keys.
WAVEJIT_VECTOR_CLONES void multiply_scores(const double* q, const double* keys, std::size_t head_dim, double* scores,
                                           std::size_t scores_stride) {
  for (std::size_t column = 0; column < key_block; column += register_columns) {
    Sums sums{};
    for (std::size_t d = 0; d < head_dim; ++d) {
      const double* k = keys + d * key_block + column;
      for (std::size_t r = 0; r < register_rows; ++r) {
        const double factor = q[r * head_dim + d];
        for (std::size_t j = 0; j < register_columns; ++j) sums[r][j] += factor * k[j];
      }
    }
    for (std::size_t r = 0; r < register_rows; ++r)
      for (std::size_t j = 0; j < register_columns; ++j) scores[r * scores_stride + column + j] = sums[r][j];
  }
}

// output[r] += Σ_key weights[r][key] · values[key], magnitude with |values| and the weights that bounds count, over
// `keys` keys; head_dim is padded to a multiple of register_columns.
WAVEJIT_VECTOR_CLONES void add_weighted(const double* weights, const double* counted, std::size_t weights_stride,
                                        const double* values, std::size_t keys, std::size_t head_dim, double* output,
                                        double* magnitude) {
  for (std::size_t column = 0; column < head_dim; column += register_columns) {
    Sums sums{};
    Sums magnitudes{};
    for (std::size_t key = 0; key < keys; ++key) {
      const double* v = values + key * head_dim + column;
      for (std::size_t r = 0; r < register_rows; ++r) {
        const double weight = weights[r * weights_stride + key];
        const double of_bound = counted[r * weights_stride + key];
        for (std::size_t j = 0; j < register_columns; ++j) {
          sums[r][j] += weight * v[j];
          magnitudes[r][j] += of_bound * std::fabs(v[j]);
        }
      }
    }
    for (std::size_t r = 0; r < register_rows; ++r) {
      for (std::size_t j = 0; j < register_columns; ++j) {
        output[r * head_dim + column + j] += sums[r][j];
        magnitude[r * head_dim + column + j] += magnitudes[r][j];
      }
    }
  }
}

std::size_t round_up(std::size_t value, std::size_t multiple) { return (value + multiple - 1) / multiple * multiple; }

// One block of rows, with the scratch memory that it uses.
class RowBlock {
 public:
  explicit RowBlock(const HeadRows& head)
      : head_(head),
        padded_dim_(round_up(head.head_dim_v, register_columns)),
        stride_(round_up(std::max<std::size_t>(head.keys, 1), key_block)),
        q_(row_block * head.head_dim_qk),
        scores_(row_block * stride_),
        raised_(head.least_weight > 0 ? scores_.size() : 0),
        block_(key_block * std::max(head.head_dim_qk, padded_dim_)),
        lengths_(key_block),
        output_(row_block * padded_dim_),
        magnitude_(row_block * padded_dim_) {}

  void attend(std::size_t first, ExactRows& exact) {
    count_ = std::min(row_block, head_.rows.size() - first);
    seen_ = {.first = static_cast<std::int64_t>(head_.keys), .end = 0};
    for (std::size_t r = 0; r < count_; ++r) {
      visible_[r] = visible_keys(head_.rules, head_.rows[first + r], static_cast<std::int64_t>(head_.keys));
      if (visible_[r].first == visible_[r].end) continue;
      seen_ = {.first = std::min(seen_.first, visible_[r].first), .end = std::max(seen_.end, visible_[r].end)};
    }
    compute_scores(first);
    std::ranges::fill(output_, 0.0);
    std::ranges::fill(magnitude_, 0.0);
    squares_.fill(0);
    std::array<double, row_block> totals{};
    for (std::size_t r = 0; r < count_; ++r) {
      totals[r] = weigh(r, first + r, exact.lse[first + r], exact.score[first + r], exact.largest[first + r]);
      exact.mass[first + r] = raise_weights(r) / totals[r];
    }
    sum_values();
    for (std::size_t r = 0; r < count_; ++r) {
      const bool empty = visible_[r].first == visible_[r].end;
      exact.spread[first + r] = empty ? 0 : squares_[r] / (totals[r] * totals[r]);
      for (std::size_t d = 0; d < head_.head_dim_v; ++d) {
        const std::size_t to = (first + r) * head_.head_dim_v + d;
        exact.output[to] = empty ? 0 : output_[r * padded_dim_ + d] / totals[r];
        exact.magnitude[to] = empty ? 0 : magnitude_[r * padded_dim_ + d] / totals[r];
      }
    }
  }

 private:
  std::size_t first_block() const {
    return seen_.first < seen_.end ? static_cast<std::size_t>(seen_.first) / key_block * key_block : 0;
  }
  std::size_t end() const { return seen_.first < seen_.end ? static_cast<std::size_t>(seen_.end) : 0; }

  void compute_scores(std::size_t first) {
    const std::size_t dim = head_.head_dim_qk;
    std::ranges::fill(q_, 0.0);
    std::copy_n(head_.q.begin() + static_cast<std::ptrdiff_t>(first * dim), count_ * dim, q_.begin());
    for (std::size_t key = first_block(); key < end(); key += key_block) {
      const std::size_t keys = std::min(key_block, head_.keys - key);
      std::ranges::fill(block_, 0.0);
      for (std::size_t j = 0; j < keys; ++j)
        for (std::size_t d = 0; d < dim; ++d)
          block_[d * key_block + j] = static_cast<double>(head_.k[(key + j) * dim + d]);
      for (std::size_t r = 0; r < count_; r += register_rows)
        multiply_scores(&q_[r * dim], block_.data(), dim, &scores_[r * stride_ + key], stride_);
    }
  }

  // Products of integers are exact; what follows is what the rounding word says: f32, and fp16 once.
  double half_score(double sum, std::int64_t row, std::int64_t key) const {
    const float scaled = static_cast<float>(sum) * static_cast<float>(head_.rules.scale);
    const float biased = head_.bias ? scaled + static_cast<float>(head_.bias(row, key)) : scaled;
    return static_cast<double>(static_cast<_Float16>(biased));
  }

  // Raw scores → weights; what the row does not see weighs 0. Returns their sum, and Σ p·|score| as `mean`.
  double weigh(std::size_t r, std::size_t index, double& lse, double& mean, double& largest) {
    mean = 0;
    largest = 0;
    double* scores = &scores_[r * stride_];
    const auto [first, last] = visible_[r];
    const ScoreRules& rules = head_.rules;
    const std::int64_t row = head_.rows[index];
    if (first == last) {
      lse = rules.sink ? *rules.sink : -infinity;
      std::fill(scores + first_block(), scores + round_up(end(), key_block), 0.0);
      return 1;
    }
    double maximum = rules.sink ? *rules.sink : -infinity;
    for (std::int64_t key = first; key < last; ++key) {
      if (rules.half_scores) {
        scores[key] = half_score(scores[key], row, key);
        maximum = scores[key] <= maximum ? maximum : scores[key];
        continue;
      }
      double score = scores[key] * rules.scale;
      if (rules.softcap != 0) score = rules.softcap * std::tanh(score / rules.softcap);
      if (rules.slope != 0) score -= rules.slope * std::fabs(static_cast<double>(row + rules.position - key));
      if (head_.bias) score += head_.bias(row, key);
      scores[key] = score;
      if (const double size = std::fabs(score); size > largest && size < infinity) largest = size;
      // A NaN stays: no comparison with it is true.
      maximum = score <= maximum ? maximum : score;
    }
    largest =
        rules.half_scores || rules.softcap != 0 || rules.slope != 0 || head_.bias ? 0 : largest * std::numbers::log2e;
    std::fill(scores + first_block(), scores + first, 0.0);
    std::fill(scores + last, scores + round_up(end(), key_block), 0.0);
    // Every score −∞: as good as no key. Beside a sink of ∞ nothing counts.
    if (maximum == -infinity || (maximum == infinity && rules.sink == infinity)) {
      lse = maximum;
      std::fill(scores + first, scores + last, 0.0);
      return 1;
    }
    double total = rules.sink ? std::exp(*rules.sink - maximum) : 0;
    if (total > 0) mean = total * std::fabs(*rules.sink);
    for (std::int64_t key = first; key < last; ++key) {
      const double score = scores[key];
      scores[key] = std::exp(score - maximum);
      total += scores[key];
      if (scores[key] > 0) mean += scores[key] * std::fabs(score);
    }
    mean /= total;
    lse = maximum + std::log(total);
    return total;
  }

  // Weights as bounds count them; returns their sum.
  double raise_weights(std::size_t r) {
    if (raised_.empty()) return 0;
    const double* weights = &scores_[r * stride_];
    const double largest = *std::max_element(weights + first_block(), weights + round_up(end(), key_block));
    double sum = 0;
    for (std::size_t key = first_block(); key < round_up(end(), key_block); ++key) {
      const auto position = static_cast<std::int64_t>(key);
      const bool seen = position >= visible_[r].first && position < visible_[r].end;
      const double raised = seen ? std::max(weights[key], largest * head_.least_weight) : 0;
      raised_[r * stride_ + key] = raised;
      sum += raised;
    }
    return sum;
  }
  const std::vector<double>& counted() const { return raised_.empty() ? scores_ : raised_; }

  void sum_values() {
    const std::size_t dim = head_.head_dim_v;
    // Rows of the last group that were not asked for weigh nothing.
    for (std::size_t r = count_; r < round_up(count_, register_rows); ++r) {
      std::fill_n(&scores_[r * stride_], stride_, 0.0);
      if (!raised_.empty()) std::fill_n(&raised_[r * stride_], stride_, 0.0);
    }
    for (std::size_t key = first_block(); key < end(); key += key_block) {
      const std::size_t keys = std::min(key_block, end() - key);
      bool finite = true;
      for (std::size_t j = 0; j < keys; ++j) {
        for (std::size_t d = 0; d < padded_dim_; ++d) {
          const double value = d < dim ? static_cast<double>(head_.v[(key + j) * dim + d]) : 0.0;
          block_[j * padded_dim_ + d] = value;
          finite = finite && std::isfinite(value);
        }
      }
      if (!finite) {
        add_seen_only(key, keys);
        continue;
      }
      measure_values(keys);
      for (std::size_t r = 0; r < count_; ++r) add_squares(r, key, keys);
      for (std::size_t r = 0; r < count_; r += register_rows) {
        const std::size_t at = r * stride_ + key;
        add_weighted(&scores_[at], &counted()[at], stride_, block_.data(), keys, padded_dim_, &output_[r * padded_dim_],
                     &magnitude_[r * padded_dim_]);
      }
    }
  }

  // The squared length of each key's value row.
  void measure_values(std::size_t keys) {
    for (std::size_t j = 0; j < keys; ++j) {
      const double* v = &block_[j * padded_dim_];
      double sum = 0;
      for (std::size_t d = 0; d < padded_dim_; ++d) sum += v[d] * v[d];
      lengths_[j] = sum;
    }
  }

  void add_squares(std::size_t r, std::size_t block, std::size_t keys) {
    const double* weights = &counted()[r * stride_ + block];
    double sum = 0;
    for (std::size_t j = 0; j < keys; ++j) sum += weights[j] * weights[j] * lengths_[j];
    squares_[r] += sum;
  }

  // Adds the values of seen keys only: 0 · NaN is NaN, so a weight of 0 would not hide the value of an unseen key.
  void add_seen_only(std::size_t block, std::size_t keys) {
    measure_values(keys);
    for (std::size_t r = 0; r < count_; ++r) {
      for (std::size_t j = 0; j < keys; ++j) {
        const auto key = static_cast<std::int64_t>(block + j);
        if (key < visible_[r].first || key >= visible_[r].end) continue;
        const double weight = scores_[r * stride_ + block + j];
        const double of_bound = counted()[r * stride_ + block + j];
        squares_[r] += of_bound * of_bound * lengths_[j];
        for (std::size_t d = 0; d < head_.head_dim_v; ++d) {
          output_[r * padded_dim_ + d] += weight * block_[j * padded_dim_ + d];
          magnitude_[r * padded_dim_ + d] += of_bound * std::fabs(block_[j * padded_dim_ + d]);
        }
      }
    }
  }

  const HeadRows& head_;
  std::size_t padded_dim_;
  std::size_t stride_;
  std::size_t count_ = 0;
  VisibleKeys seen_;  // by any row of the block
  std::array<VisibleKeys, row_block> visible_{};
  std::vector<double> q_;
  std::vector<double> scores_;
  std::vector<double> raised_;  // empty: bounds count the weights themselves
  std::vector<double> block_;
  std::vector<double> lengths_;
  std::array<double, row_block> squares_{};
  std::vector<double> output_;
  std::vector<double> magnitude_;
};

}  // namespace

ExactRows exact_rows(const HeadRows& head) {
  ExactRows exact;
  exact.output.resize(head.rows.size() * head.head_dim_v);
  exact.magnitude.resize(exact.output.size());
  exact.lse.resize(head.rows.size());
  exact.spread.resize(head.rows.size());
  exact.score.resize(head.rows.size());
  exact.mass.resize(head.rows.size());
  exact.largest.resize(head.rows.size());
  if (head.rows.empty()) return exact;
  RowBlock block(head);
  for (std::size_t row = 0; row < head.rows.size(); row += row_block) block.attend(row, exact);
  return exact;
}

}  // namespace wavejit::attention::program
