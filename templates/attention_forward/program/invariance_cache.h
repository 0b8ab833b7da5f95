// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Batches whose keys and values 8 bits hold, times powers of two: the 16-bit kernel over them is what every call over
// the bytes and their scales is held against.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "templates/attention_forward/program/invariance_batch.h"
#include "wavejit/wavejit.h"

namespace wavejit::attention_forward::program {

// Rounds K and V of a batch to e4m3 or, by turns, e5m2 and int8, to values that both encodings have; of three batches
// one has a scale for each head of each sequence, and one for each token of each kv head.
void make_cached(Batch& batch);
// Rounds Q, too, all to e4m3. Of such a batch every call is over bytes, and held against one over bytes.
void make_cached_queries(Batch& batch);

// The format in the encoding of a target.
wavejit_dtype cache_format(const Batch& batch, const std::string& target);

// Elements as a call over 16 bits would have them; what is no number is NaN.
std::vector<std::uint8_t> cache_bytes(const Batch& batch, wavejit_dtype format,
                                      std::span<const std::uint16_t> elements);

// [pieces][kv heads]; empty: none.
struct PieceScales {
  std::vector<float> q;
  std::vector<float> k;
  std::vector<float> v;
};
PieceScales scales_of(const Batch& batch, std::span<const RowsOf> pieces);

// "e4m3, scaled"
std::string cache_text(const Batch& batch);

}  // namespace wavejit::attention_forward::program
