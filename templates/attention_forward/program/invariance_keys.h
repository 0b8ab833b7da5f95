// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Where the keys and values of a call's pieces stand in memory: packed, dense or in pages. What is no key is NaN, or
// another garbage.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "templates/attention/program/placed_keys.h"
#include "templates/attention_forward/program/invariance_batch.h"
#include "wavejit/wavejit.h"

namespace wavejit::attention_forward::program {

using attention::program::Garbage;
using attention::program::garbage_count;

struct Paging {
  std::int64_t size = 16;
  bool heads_first = false;  // a page is [heads][keys][dim]
  bool in_turn = false;      // pages of K and V stand in turn in one tensor
  bool list = false;         // the table is one list of pages with starts
  std::int32_t layout = WAVEJIT_PAGES_OF_ROWS;

  std::string text() const;  // "pages of 16 keys, heads first"
};

// How a call holds its pieces' keys; one of them, or packed.
struct KeyPlaces {
  // Keys in a dense tensor that has this many more rows than the longest sequence.
  std::optional<std::int64_t> rows_behind = {};
  std::optional<Paging> pages = {};
  // With either of these: padding rows lie before the sequence. Dense sequences then end where their rows end.
  bool left_padding = false;
  // Packed keys with this many keys of zeros before each sequence, which a window hides, so that chunks begin
  // elsewhere.
  std::int64_t keys_in_front = 0;
  // Packed keys with garbage that no row may see: this many rows between the sequences, and the keys that a window
  // hides from all rows of a piece. Their values are garbage, too: no row sees them, so kernels do not use them.
  std::int64_t rows_between = 0;
  // The value of a sequence's last key is garbage, too, and reaches rows that do not see the key.
  bool last_value = false;
  Garbage garbage = Garbage::nan;
};

// K and V in one block of memory.
struct KeyMemory : attention::program::PlacedKeys {
  std::vector<std::uint16_t> elements;
  // Tensors; `data` is null, and both begin at elements of the block.
  wavejit_tensor k = {};
  wavejit_tensor v = {};
  std::size_t first_k = 0;
  std::size_t first_v = 0;
  std::int32_t page_layout = WAVEJIT_PAGES_OF_ROWS;
};

// How many keys the rows of a piece may see: with a diagonal those up to its last row's.
std::int64_t keys_of(const Batch& batch, const RowsOf& piece);

KeyMemory place_keys(const Batch& batch, std::span<const RowsOf> pieces, const KeyPlaces& places);

}  // namespace wavejit::attention_forward::program
