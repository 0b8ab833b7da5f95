// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A packed batch that a seed draws, and pieces of it as calls of their own.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "templates/attention/program/invariance_rows.h"
#include "templates/attention_backward/program/experiment_arrays.h"

namespace wavejit::attention_backward::program {

using attention::program::RowsOf;
using attention::program::Sequence;
using tools::Draws;

struct Batch {
  std::uint64_t number = 0;  // of the seed
  Arrays arrays;             // packed
  std::vector<Sequence> sequences;

  bool causal() const { return (arrays.experiment.mask.bits & WAVEJIT_MASK_CAUSAL) != 0; }
  std::int64_t run_rows() const;
  std::string descriptor(const Sequence& of) const;  // alone
};
tools::Result<Batch> draw_batch(const tools::InvarianceRequest& request);
// The same of this many heads that rows are several runs: a run has 32,768 rows of heads (kernel/canon.h), so a
// sequence takes seconds.
tools::Result<Batch> draw_batch_of_runs(const tools::InvarianceRequest& request);

inline std::vector<RowsOf> all_whole(const Batch& batch) {
  return attention::program::whole_sequences(batch, &Sequence::queries);
}
// The keys that rows may see: with a diagonal those up to the last row's.
std::int64_t keys_of(const Batch& batch, const RowsOf& piece);

// How a call holds its pieces: packed, or dense, where all have as many rows.
struct Placing {
  attention::program::ArrayLayout layout = attention::program::ArrayLayout::packed;
  std::int64_t rows_behind = 0;  // of dense keys: NaN behind the longest
};
// The pieces in this order, as the arrays of one call. `exact` is empty.
Arrays arranged(const Batch& batch, std::span<const RowsOf> pieces, const Placing& placing);

}  // namespace wavejit::attention_backward::program
