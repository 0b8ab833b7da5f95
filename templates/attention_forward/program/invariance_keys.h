// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Where the keys and values of a call's pieces stand in memory: packed, dense or in pages. What is no key is NaN, or
// another garbage.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "templates/attention/program/placed_keys.h"
#include "templates/attention_forward/program/invariance_batch.h"
#include "wavejit/wavejit.h"

namespace wavejit::attention_forward::program {

// K and V in one block of memory.
struct KeyMemory : PlacedKeys {
  std::vector<std::uint16_t> elements = {};
  // Tensors; `data` is null. K begins where the block does.
  wavejit_tensor k = {};
  wavejit_tensor v = {};
  std::size_t first_v = 0;
  std::int32_t page_layout = WAVEJIT_PAGES_OF_ROWS;

  // The tensors, of elements in device memory.
  template <typename Element>
  void give(wavejit_attention_forward_arguments& call, Element* device) const {
    call.k.data = device;
    call.v.data = device + first_v;
  }
};

KeyMemory place_keys(const Batch& batch, std::span<const RowsOf> pieces, const KeyPlaces& places);

}  // namespace wavejit::attention_forward::program
