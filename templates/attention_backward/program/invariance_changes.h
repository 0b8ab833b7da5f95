// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What each dimension of gradients changes about a batch.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "templates/attention_backward/program/invariance_batch.h"
#include "tools/invariance/invariance.h"
#include "wavejit/simgpu.h"

namespace wavejit::attention_backward::program {

// One changed run: calls that together have whole sequences, and how each holds its pieces.
struct Change {
  std::string text;
  std::vector<std::vector<RowsOf>> calls;
  Placing placing = {};
  std::string pipeline = {};
  // The schedule of the simulated GPU; on another device the same call once more.
  std::optional<wavejit_simgpu_schedule> schedule = std::nullopt;
  // In calls of one sequence each: where pieces of its keys end, each a call that continues the sums of dq.
  std::vector<std::vector<std::int64_t>> key_ends = {};
  // The same of pieces of its rows, and the sums of dk and dv.
  std::vector<std::vector<std::int64_t>> row_ends = {};
};

// Which part of a sequence is compared.
enum class Compared : std::uint8_t {
  gradients,
  rows_and_keys,  // all but d_sink
  queries,        // dq alone: dk and dv of pieces are sums of fewer rows
  // dk, dv and d_sink of the sequence and of all before it, added in f32 by the caller, in order.
  sums,
  // dk and dv of pieces, added by the caller: other bits.
  added_pieces,
};

struct Dimension {
  tools::InvarianceDimension told;
  // None: the batch has nothing to change.
  std::vector<Change> (*changes)(const Batch& batch, Draws& draws) = nullptr;
  Compared compared = Compared::gradients;
  bool of_runs = false;  // of a batch of draw_batch_of_runs
};
const std::vector<Dimension>& all_dimensions();

}  // namespace wavejit::attention_backward::program
