// Online softmax over score accumulators in which a lane owns one column (a query row), in canonical arithmetic
// (docs/canonical-arithmetic.md). Everything that decides a bit of the result stands in this file.
//
// Lanes l and l + 32 share a row: each holds half of the keys of a tile. The running maximum is the same in both; the
// running sum is kept per half and joined once at the end.
#pragma once

#include <span>

#include "codegen/language/fragment.h"

namespace wavejit::language {

// Per-lane state of the rows, carried round the tile loop.
struct SoftmaxState {
  Value* maximum = nullptr;   // m: raw scores, −inf until the row has seen a key
  Value* shift = nullptr;     // −m · c, 0 while m is −inf (so that a masked score stays −inf)
  Value* half_sum = nullptr;  // l of this lane's half
};

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

  // The same in single operations, for pipelines that string them between matrix instructions. What they must keep of
  // raise_maximum and weigh: the sum is rescaled after the last addition to it and before the next, O likewise.
  Value* exp2(Value* value) const;
  Value* larger(Value* a, Value* b, Value* c) const;            // one instruction
  Value* whole_row(Value* tile_maximum, Value* maximum) const;  // over both halves, and the maximum so far
  Value* grows(Value* maximum, Value* raised) const;            // per lane: the row's maximum is to be raised
  Value* new_shift(Value* raised) const;
  Value* exponent(Value* score, Value* shift) const;
  // 1 exactly for rows that do not grow.
  Value* rescale_factor(Value* maximum, Value* raised, Value* grows) const;

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
// `scaled_maximum` in powers of two and the whole row's `row_sum` on it, −inf and 0 where it saw no key; `sink` in
// natural units. Counts the sink once: also of a row that was put together from parts.
RowEnd end_with_sink(Kernel& kernel, Value* scaled_maximum, Value* row_sum, Value* sink);

}  // namespace wavejit::language
