// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Where the keys of a call's pieces stand in memory: packed, dense or in pages, their rope beside V's columns or in a
// tensor of its own. What is no key is NaN, or another garbage.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "templates/attention/program/placed_keys.h"
#include "templates/attention_latent/program/invariance_batch.h"

namespace wavejit::attention_latent::program {

using attention::program::KeyPlaces;
using attention::program::Paging;

// [outer][inner][1][columns].
struct KeyMemory : attention::program::PlacedKeys {
  std::vector<std::uint16_t> k = {};
  std::vector<std::uint16_t> k_rope = {};  // empty: not apart
  // The sequence and key that a row has; −1: none.
  struct Key {
    std::size_t sequence = 0;
    std::int64_t key = -1;
  };
  std::vector<Key> has = {};
};
KeyMemory place_keys(const Batch& batch, std::span<const RowsOf> pieces, const KeyPlaces& places);

}  // namespace wavejit::attention_latent::program
