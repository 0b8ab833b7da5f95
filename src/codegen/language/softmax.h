// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Online softmax over score accumulators in which a lane owns one column (a query row), in canonical arithmetic
// (docs/canonical-arithmetic.md). Every operation of the softmax that decides a bit stands in softmax.cpp, and so does
// which values each operation takes. Pipelines choose when the operations run.
//
// Lanes n and n + 32 share a row: each holds half of the keys of a tile. The running maximum is the same in both; the
// running sum is kept per half and joined once at the end.
#pragma once

#include <span>
#include <vector>

#include "codegen/language/fragment.h"

namespace wavejit::language {

// Per-lane state of the rows, carried round the tile loop.
struct SoftmaxState {
  Value* maximum = nullptr;   // m: raw scores, −inf until the row has seen a key
  Value* shift = nullptr;     // −m · c, 0 while m is −inf (so that a masked score stays −inf)
  Value* half_sum = nullptr;  // l of this lane's half
};

// One addition of a tile's sum: term `into` becomes itself plus term `other`.
struct Addition {
  int into;
  int other;
};
// The canonical tree that adds up a lane's weights of a tile, level by level; the sum ends in term 0. Terms are the
// registers of the tile's accumulators in a row, all of the first before those of the second. `terms` is a power of
// two. Additions of one level may be written in any order, and each as soon as its two terms are there.
std::vector<std::vector<Addition>> sum_tree(int terms);

class Softmax {
 public:
  // `scale_log2e` is c > 0; a maximum is raised when it grows by more than `rescale_threshold` powers of two. Uniform.
  Softmax(Kernel& kernel, Value* scale_log2e, Value* rescale_threshold)
      : kernel_(kernel), scale_(scale_log2e), rescale_threshold_(rescale_threshold) {}

  SoftmaxState initial() const;

  // Takes a tile's scores into the maximum. Where a row grew by more than the threshold, its sum and its columns of
  // `outputs` are scaled to the new maximum; all other rows stay as they are, bit for bit.
  SoftmaxState raise_maximum(const SoftmaxState& state, std::span<const Accumulator> scores,
                             std::span<Accumulator> outputs) const;

  // scores ← P = exp2(score · c − m · c), and their sum into the state.
  SoftmaxState weigh(const SoftmaxState& state, std::span<Accumulator> scores) const;

  // The same in single operations, for pipelines that string them between matrix instructions. Such a pipeline adds up
  // weights along sum_tree. It rescales the running sum and O once a tile, between what two tiles add to them.
  Value* exp2(Value* value) const;
  Value* larger(Value* a, Value* b, Value* c) const;            // one instruction
  Value* whole_row(Value* tile_maximum, Value* maximum) const;  // over both halves, and the maximum so far
  Value* grows(Value* maximum, Value* raised) const;            // per lane: the row's maximum is to be raised
  Value* new_shift(Value* raised) const;
  Value* exponent(Value* score, Value* shift) const;
  // 1 exactly for rows that do not grow.
  Value* rescale_factor(Value* maximum, Value* raised, Value* grows) const;
  // A running sum or a part of O, scaled to the new maximum.
  Value* rescaled(Value* value, Value* factor) const;
  // The running sum with a tile's sum added.
  Value* accumulated(Value* half_sum, Value* tile_sum) const;

  // l of the whole row, the same bits in both halves.
  Value* row_sum(const SoftmaxState& state) const;
  // 1 / l; 0 for a row that saw no key.
  Value* inverse(Value* row_sum) const;
  // Natural log of the row's sum of exponentials; −inf for a row that saw no key.
  Value* log_sum_exp(const SoftmaxState& state, Value* row_sum) const;
  // m in powers of two.
  Value* scaled_maximum(const SoftmaxState& state) const;

 private:
  Value* raised(Value* maximum, std::span<const Accumulator> scores) const;

  Kernel& kernel_;
  Value* scale_;
  Value* rescale_threshold_;
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
