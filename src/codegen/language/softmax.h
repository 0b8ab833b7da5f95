// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Online softmax over score accumulators in which a lane owns one column (a query row), in canonical arithmetic
// (docs/canonical-arithmetic.md). Every operation of the softmax that decides a bit stands in softmax.cpp, and so does
// which values each operation takes. Pipelines choose when the operations run.
//
// Lanes n and n + 32 (of waves of 32: n + 16) share a row: each holds half of the keys of a tile. The running maximum
// is the same in both. Each half keeps four running sums, one for each value of bits 3 and 4 of the key's number (2 and
// 4 where accumulators have blocks of eight rows); they are joined where a chunk ends.
#pragma once

#include <algorithm>
#include <array>
#include <functional>
#include <span>
#include <vector>

#include "codegen/language/fragment.h"

namespace wavejit::language {

// Sums that one lane has, where the vector unit adds up.
inline constexpr std::size_t running_sums = 4;

// What a lane carries of l: [j] has the keys of its half whose bits 4 and 3 (4 and 2) are j. Or one number, the whole
// row's, where the matrix unit adds up.
class RunningSums {
 public:
  RunningSums() = default;
  explicit RunningSums(std::size_t count) : count_(count) {}
  auto begin() { return values_.begin(); }
  auto begin() const { return values_.begin(); }
  auto end() { return values_.begin() + static_cast<std::ptrdiff_t>(count_); }
  auto end() const { return values_.begin() + static_cast<std::ptrdiff_t>(count_); }
  std::size_t size() const { return count_; }
  Value*& operator[](std::size_t j) { return values_[j]; }
  Value* operator[](std::size_t j) const { return values_[j]; }
  void fill(Value* value) { std::fill(begin(), end(), value); }

 private:
  std::array<Value*, running_sums> values_{};
  std::size_t count_ = running_sums;
};

// Per-lane state of the rows, carried round the tile loop.
struct SoftmaxState {
  // m: raw scores, −inf until the row has seen a key of the chunk. Of weights in 8 bits N: a whole number of powers of
  // two that no weight passes by more than 0.5.
  Value* maximum = nullptr;
  RunningSums sums;
  // Set for weights in 8 bits, else null. O and l are counted in a power of two, and the row's weights stand `distance`
  // powers above it: a scale of the products that take them, as ByteMatrix::mma takes it (its lowest byte is 127 +
  // distance). So a maximum that grows is no multiplication of O.
  Value* scale = nullptr;

  void each(this auto& state, auto visit) {
    visit(state.maximum);
    visit(state.sums);
    visit(state.scale);
  }
};

// One addition of a tile's sum: term `into` becomes itself plus term `other`.
struct Addition {
  int into;
  int other;
};
// Which of a lane's weights are added to which when the sum of a tile is computed: the canonical tree, level by level.
// The terms are the registers of the tile's two accumulators in a row, all of the first before those of the second. The
// tree adds along bits 5, 1 and 0 of the key's number, in this order; the sum of running sum j ends in term 4 · j.
// Additions of one level may be written in any order, and each as soon as its two terms are there. `registers`: the
// number of registers of one accumulator.
std::vector<std::vector<Addition>> sum_tree(int registers);

// What a row has of some chunks of keys: l is the whole row's, O stands elsewhere.
struct PartStatistics {
  Value* maximum;
  Value* sum;
};
// What two parts of a row are multiplied with when they are merged. One of them is exactly 1.
struct MergeWeights {
  Value* maximum;  // of both
  Value* earlier;
  Value* later;
};

// What weights are rounded to. In 8 bits they are 2⁸ times as large, so that what is 2⁻¹⁷ of the largest is no zero,
// and N follows each tile, so that none passes 448. l is the sum of the rounded ones.
enum class WeightType : std::uint8_t { wide, bytes };

class Softmax {
 public:
  // `scale_log2e` is c > 0; a maximum is raised when it grows by more than `rescale_threshold` powers of two. Uniform.
  Softmax(Kernel& kernel, Value* scale_log2e, Value* rescale_threshold, WeightType weights = WeightType::wide);

  SoftmaxState initial() const;

  // Takes a tile's scores into the maximum. Where a row grew by more than the threshold, its sum and its columns of
  // `outputs` are scaled to the new maximum; all other rows stay as they are, bit for bit. `rescale`: for outputs that
  // stand where vector instructions do not reach; it calls rescaled() for each.
  using Rescale = std::function<void(std::span<Value*> outputs, Value* factor)>;
  SoftmaxState raise_maximum(const SoftmaxState& state, std::span<const Accumulator> scores,
                             std::span<Accumulator> outputs, const Rescale& rescale = {}) const;

  // scores ← P = exp2(score · c − m · c), and their sum into the state.
  SoftmaxState weigh(const SoftmaxState& state, std::span<Accumulator> scores) const;
  // P alone, where the matrix unit adds up.
  void to_weights(const SoftmaxState& state, std::span<Accumulator> scores) const;

  // The same in single operations, for pipelines that string them between matrix instructions. They add up weights
  // along sum_tree. They rescale the running sums after one tile's addition to them and before the next one's, O
  // likewise.
  Value* exp2(Value* value) const;
  Value* larger(Value* a, Value* b, Value* c) const;  // one instruction
  // −∞ of which the compiler knows nothing, or null where weights are wide. A maximum of three with it is one
  // instruction where one of two needs both first in a form that is no signalling NaN.
  Value* least() const { return least_; }
  Value* largest(std::span<const Accumulator> scores) const;    // of the lane's
  Value* whole_row(Value* tile_maximum, Value* maximum) const;  // over both halves, and the maximum so far
  Value* grows(Value* maximum, Value* raised) const;            // per lane: the row's maximum is to be raised
  Value* shift(Value* maximum) const;                           // −m · c, or 8 − N; finite also where m is −inf
  Value* exponent(Value* score, Value* shift) const;
  // 1 exactly for rows that do not grow.
  Value* rescale_factor(Value* maximum, Value* raised, Value* grows) const;
  // A running sum or a part of O, scaled to the new maximum.
  Value* rescaled(Value* value, Value* factor) const;
  // The steps for weights in 8 bits, in five operations: N with the largest scores of both halves of a tile.
  struct PowerSteps {
    Value* product = nullptr;
    Value* above = nullptr;
    Value* whole = nullptr;
  };
  void multiply(PowerSteps& steps, Value* one_half, Value* other_half) const;
  void add_margin(PowerSteps& steps) const;
  void round_up(PowerSteps& steps) const;
  Value* power(const PowerSteps& steps, Value* power) const;
  // Called after that, and after the last product with the weights of the tile before: sets the scale of the next
  // products. If N has left the units of O and l by more than 64, both are moved to other units. `before`: N of the
  // tile before.
  SoftmaxState scaled(const SoftmaxState& state, Value* before, std::span<Accumulator> outputs) const;
  // What l is relative to.
  PartStatistics whole_of(const SoftmaxState& state) const;

  // A running sum with a tile's.
  Value* accumulated(Value* running, Value* tile_sum) const;

  // The end of a chunk: l of the whole row, the same bits in both halves.
  Value* row_sum(const SoftmaxState& state) const;

  // Two parts of one row become one: of all keys of `earlier` and then of `later`. A part that saw no key (−inf, 0, 0)
  // changes nothing.
  MergeWeights merge_weights(Value* earlier_maximum, Value* later_maximum) const;
  // A sum, or a part of O: one rounding, since one weight is 1.
  Value* merged(const MergeWeights& weights, Value* earlier, Value* later) const;

  // 1 / l; 0 for a row that saw no key.
  Value* inverse(Value* row_sum) const;
  // Natural log of the row's sum of exponentials; −inf for a row that saw no key.
  Value* log_sum_exp(const PartStatistics& row) const;
  // What the row's sum is relative to, in powers of two: m.
  Value* scaled_maximum(Value* maximum) const;

 private:
  Value* raised(Value* maximum, std::span<const Accumulator> scores) const;

  Kernel& kernel_;
  Value* scale_;
  Value* rescale_threshold_;
  WeightType weights_;
  Value* least_ = nullptr;
};

// The end of a row whose softmax has one more logit without a value, the sink: what O is multiplied with, and LSE.
struct RowEnd {
  Value* factor;
  Value* log_sum_exp;
};
// `scaled_maximum` is the row's maximum in powers of two, −inf where it saw no key. `row_sum` is the sum of the whole
// row's weights relative to that maximum, 0 where it saw no key. `sink` is in natural units. Called once a row, also
// for a row that was put together from parts: it counts the sink.
RowEnd end_with_sink(Kernel& kernel, Value* scaled_maximum, Value* row_sum, Value* sink);

}  // namespace wavejit::language
