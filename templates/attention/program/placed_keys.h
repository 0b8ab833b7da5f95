// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Where the keys of a call's pieces stand in memory, for `invariance`: packed, dense or in pages; and what the call says
// of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "templates/attention/program/invariance_rows.h"
#include "tools/call_memory.h"
#include "wavejit/wavejit.h"

namespace wavejit::attention::program {

// Pages of a cache: shuffled, with a few that nobody has, and garbage in the table's entries that no sequence has.
struct Paging {
  std::int64_t size = 16;
  bool heads_first = false;  // a page is [heads][keys][dim]
  bool in_turn = false;      // pages of K and V stand in turn in one tensor
  bool list = false;         // the table is one list of pages with starts
  std::int32_t layout = WAVEJIT_PAGES_OF_ROWS;

  std::string text() const;  // "pages of 16 keys, heads first"
};

// How a call holds its pieces' keys: one of the first two, or packed.
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
  bool apart = false;  // a latent's rope has a tensor of its own
  Garbage garbage = Garbage::nan;
  bool reversed = false;  // keys in the opposite order: other sums
};

// What a key's number in its piece becomes: an outer index of the tensors and a row of it.
struct KeySlot {
  std::int64_t outer = 0;
  std::int64_t row = 0;
};

// Packed keys are one outer row, pages are the outer rows of a cache. Arrays that the call takes have elements.
struct PlacedKeys {
  std::int64_t outer = 1;
  std::int64_t inner = 0;
  std::int64_t longest = 0;
  std::vector<std::int32_t> starts = {};
  std::vector<std::int32_t> lengths = {};
  std::vector<std::int32_t> first_keys = {};
  std::vector<std::int32_t> table = {};
  std::vector<std::int32_t> table_starts = {};
  std::int64_t table_columns = 0;
  std::int64_t table_row_stride = 0;

  KeySlot slot(std::size_t piece, std::int64_t key) const;

  template <typename Call>
  void describe(Call& call, tools::CallMemory& memory, const std::optional<std::int64_t>& rows_behind) const {
    call.sequences.key_starts = memory.in(starts);
    call.sequences.key_lengths = memory.in(lengths);
    call.sequences.first_keys = memory.in(first_keys);
    if (!rows_behind) call.sequences.max_key_length = longest;
    call.pages.block_table = memory.in(table);
    call.pages.table_starts = memory.in(table_starts);
    call.pages.table_columns = table_columns;
    call.pages.table_row_stride = table_row_stride;
  }

  std::int64_t page_size = 0;                   // 0: no pages
  std::vector<KeySlot> firsts = {};             // of a piece; in pages the slot, whatever the page
  std::vector<std::size_t> first_columns = {};  // of a piece, in the table
};

// `lengths`: keys of each piece. `number`: of the batch, which pages are shuffled by.
PlacedKeys placed_keys(const std::vector<std::int64_t>& lengths, const KeyPlaces& places, std::uint64_t number);

}  // namespace wavejit::attention::program
