// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Calls over pieces of a batch: rows of a sequence with the keys that they may see.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "templates/attention_latent/program/invariance_keys.h"
#include "tools/exit_code.h"

struct wavejit_engine;

namespace wavejit::attention_latent::program {

// How a call holds its pieces.
struct Way {
  int splits = 1;
  std::uint32_t flags = 0;  // of wavejit_call_flags: in how many launches runs are merged
  KeyPlaces keys = {};
  bool queries_apart = false;
  // Queries in a dense tensor: all pieces have as many rows.
  bool dense_queries = false;
  // With dense queries: the workspace is so small a part of what the call has use for. 1: the engine's own.
  std::uint64_t rounds = 1;
  // Keys as the bytes that they are made of; with twice their scales.
  bool eight_bits = false;
  bool doubled_scales = false;
  // Where parts of the heads end, each part a call over the same tensors; empty: all heads in one.
  std::vector<std::int64_t> head_ends = {};
};

using Answer = attention::program::RowAnswer;

// All pieces, in this order. An answer a piece. Nothing: no kernel does it on this engine.
tools::Result<std::optional<std::vector<Answer>>> run_pieces(wavejit_engine* engine, const Batch& batch,
                                                             std::span<const RowsOf> pieces, const Way& way);

}  // namespace wavejit::attention_latent::program
