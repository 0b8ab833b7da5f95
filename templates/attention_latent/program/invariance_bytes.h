// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Batches whose keys stand in caches of 8 bits: in one of three formats by turns, drawn so that both encodings of e4m3
// have every byte's number. The 16-bit kernel over what the bytes count for is what every call over them is held
// against.
#pragma once

#include <string>
#include <vector>

#include "templates/attention_latent/program/invariance_keys.h"
#include "wavejit/wavejit.h"

namespace wavejit::attention_latent::program {

// Draws the batch's queries and keys anew, for one of the formats.
void make_cached(Batch& batch);

// "cache=e4m3 row_scales=128", as descriptors call it.
std::string cache_text(const Batch& batch);

// What a call holds in place of keys in 16 bits; what is no key is NaN.
struct ByteKeyMemory {
  wavejit_dtype format = WAVEJIT_E4M3;
  std::int64_t columns = 0;  // of k
  std::vector<std::uint8_t> k;
  std::vector<std::uint8_t> k_rope;  // where the rope has a tensor of its own
  std::vector<float> k_scale;        // empty: keys have scales of their own
};
// `doubled`: with twice the scales.
ByteKeyMemory in_bytes(const Batch& batch, const KeyMemory& keys, bool apart, const std::string& target, bool doubled);

}  // namespace wavejit::attention_latent::program
