// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What each dimension of `wavejit invariance` changes about a batch.
#pragma once

#include <string>
#include <vector>

#include "templates/attention_forward/program/invariance_call.h"
#include "tools/invariance/invariance.h"

namespace wavejit::attention_forward::program {

// One changed run: its pieces, which together are whole sequences, and how they lie.
struct Change {
  std::string text;
  std::vector<RowsOf> pieces;
  Way way = {};
  std::string pipeline = {};
  std::int64_t rows_left_out = 0;  // the last of each sequence: they may differ
};

std::vector<RowsOf> all_whole(const Batch& batch);

struct Dimension {
  tools::InvarianceDimension told;
  // None: the batch has nothing to change.
  std::vector<Change> (*changes)(const Batch& batch, Draws& draws) = nullptr;
};
const std::vector<Dimension>& all_dimensions();

}  // namespace wavejit::attention_forward::program
