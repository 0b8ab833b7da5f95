// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Calls over pieces of a batch, and the gradients that each piece gets.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "templates/attention_backward/program/invariance_batch.h"

namespace wavejit::attention_backward::program {

// As bits of their type: dq [row][query head][dim], dk and dv [key][kv head][dim], and of f32: d_sink [query head].
struct Answer {
  std::vector<std::uint32_t> dq;
  std::vector<std::uint32_t> dk;
  std::vector<std::uint32_t> dv;
  std::vector<std::uint32_t> d_sink = {};  // empty: there are no sinks
};

// One call over all pieces, in this order. An answer a piece. Nothing: no kernel does it on this engine.
tools::Result<std::optional<std::vector<Answer>>> run_pieces(wavejit_engine* engine, const Batch& batch,
                                                             std::span<const RowsOf> pieces, const Placing& placing);

// One sequence in calls over pieces of its keys, each behind one of `ends`, that continue the sums of dq. Gradients are
// fp32 there, and rounded to the batch's type here.
tools::Result<std::optional<Answer>> run_in_ring(wavejit_engine* engine, const Batch& batch, const RowsOf& whole,
                                                 std::span<const std::int64_t> ends);

// One sequence in calls over pieces of its rows, each behind one of `ends`, that continue the sums of dk and dv;
// rounded as those. It has no d_sink: that of a piece is a sum of its own.
tools::Result<std::optional<Answer>> run_in_runs(wavejit_engine* engine, const Batch& batch, const RowsOf& whole,
                                                 std::span<const std::int64_t> ends);

// An element as a number, and the other way round.
float number_of(const Batch& batch, std::uint32_t bits);
std::uint32_t bits_of(const Batch& batch, float number);

}  // namespace wavejit::attention_backward::program
