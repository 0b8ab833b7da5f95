// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Calls over pieces of a batch: rows of a sequence with the keys that they may see.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "templates/attention_forward/program/invariance_keys.h"
#include "templates/attention_forward/program/invariance_lists.h"
#include "tools/exit_code.h"

namespace wavejit::attention_forward::program {

// How a call holds its pieces.
struct Way {
  int splits = 1;
  std::uint32_t flags = 0;  // those that hints.def lists, and WAVEJIT_ONE_LAUNCH: who merges in a second one drops out
  KeyPlaces keys = {};
  bool other_scales = false;  // of 8 bits: K's are twice what they are
  bool eight_bits = false;    // of a batch whose keys and values 8 bits hold: bytes and scales in place of 16 bits
  bool integers = false;      // Q and K in int8, V as it is
  bool bool_mask = false;     // what the diagonal, a window and local chunks show, told by a byte for each row and key
  bool bias_by_tile = false;  // the same, told by a bias of 0 and −∞
  bool wide_bias = false;     // which is f32
  std::optional<ListForm> lists = std::nullopt;  // of a batch that has lists; none: no lists
};

// What a call is made of.
struct Given {
  const Batch& batch;
  std::span<const RowsOf> pieces;
  const Way& way;
  const KeyMemory& keys;
  std::span<const std::uint16_t> queries;
};

using Answer = RowAnswer;

// One call over all pieces, in this order. An answer a piece. Nothing: no kernel does it on this engine.
Result<std::optional<std::vector<Answer>>> run_pieces(wavejit_engine* engine, const Batch& batch,
                                                      std::span<const RowsOf> pieces, const Way& way);

}  // namespace wavejit::attention_forward::program
