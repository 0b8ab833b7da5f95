// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A mixed batch that a seed draws: sequences of all lengths over one latent head, and the call that they share.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "templates/attention/program/invariance_rows.h"

namespace wavejit::attention_latent::program {

using attention::program::RowsOf;
using tools::Draws;

// One latent head.
struct DrawnSequence : attention::program::DrawnRows {
  // For caches of 8 bits, of which k is what they count for: what bytes say without scales [keys][D], and scales of
  // each key.
  std::vector<float> numbers = {};
  std::vector<float> scales = {};
};

// Keys in 8 bits: none, with one scale, in rows of 656 bytes with scales, in rows of 584 with exponents.
enum class ByteRows : std::uint8_t { none, one_scale, scaled, raised };

struct Batch {
  std::uint64_t number = 0;  // of the seed
  tools::HalfType type = tools::HalfType::bf16;
  std::int64_t dims = 576;    // of K
  std::int64_t dims_v = 512;  // its first ones
  std::int64_t heads = 1;
  bool causal = false;
  float softcap = 0;
  std::vector<float> sink;  // a logit a head, or empty
  std::vector<DrawnSequence> sequences;
  ByteRows byte_rows = ByteRows::none;
  float k_scale = 1;  // of all bytes

  attention::program::AnswerShape answer_shape() const { return {.type = type, .heads = heads, .dim = dims_v}; }
  std::string descriptor(const DrawnSequence& of) const;  // alone
};
Batch draw_batch(const tools::InvarianceRequest& request);

inline std::vector<RowsOf> all_whole(const Batch& batch) {
  return attention::program::whole_sequences(batch, &DrawnSequence::rows);
}
}  // namespace wavejit::attention_latent::program
