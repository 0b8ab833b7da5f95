// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Where the keys of a tile lie in memory when K and V are in pages (kernel/page_arguments.h).
//
// A tile's 64 keys are four granules of 16. A page is a multiple of 16 keys and the first one begins at key 0, so a
// granule never crosses the border of a page: one lookup in the block table finds all of it.
//
//   entries     one load a tile: lane l asks for the page of granule l / 16. Issue it a tile before it is needed.
//   granule     a buffer that begins at the granule's first key and ends with its last live one (uniform)
//   lane_rows   the same as an address in every lane, of granule l / 16
//
// Pages of one key, and keys behind left padding, which need not begin with a granule, are looked up one by one:
//
//   entries     lane l asks for the page of key l; where a wave has fewer lanes than a tile has keys, for those of
//               all keys l + n · lanes
//   places      per lane, of any key of the tile: its entry comes from the lane that has it
//   row         the address of such a key
//
// Keys that a list names are pages of one key, with holes. Looking one up takes two loads. Each is issued one tile
// before its result is needed:
//
//   listed      lane l asks for entry l of the tile's part of the list
//   resolved    where those keys stand, through the block table where there is one; `hidden` for an entry that names
//               no key that the row sees
//   entries     both
//
// No value in the device's arrays leads outside: entries past the sequence's pages are not read, entries that are read
// are clamped to the pages of the cache, and keys past the sequence's length read as zero.
#pragma once

#include <optional>

#include "templates/attention/emit/slice.h"
#include "templates/attention/kernel/types.h"

namespace wavejit::attention {

// How many granules `keys` keys take, counted from the first granule of a page.
language::Value* granules_up_to(language::Kernel& kernel, language::Value* keys);

// A sequence's entries in the block table: where they begin (address), and how many of them have keys that live.
struct TableRow {
  language::Value* base;
  language::Value* live;
};
// `granules`: the granules of keys that live (for pages of one key: slots).
TableRow table_row_of(language::Kernel& kernel, const KeyTensors& tensors, language::Value* granules,
                      language::Value* granules_of_page, language::Value* multiplier);

// Where the kernel's arguments have a field of PageArguments.
constexpr std::size_t page_field(const KeyTensors& tensors, std::size_t offset) {
  return tensors.page_arguments + offset;
}

class KeyPages {
 public:
  static constexpr int granule_keys = 16;

  // A row that does not exist is read as this many bytes of zeros.
  static constexpr int transfer_bytes = 16;
  KeyPages(language::Kernel& kernel, const KeyLayout& layout, const KeyTensors& tensors,
           int zero_bytes = transfer_bytes);

  bool looks_up_each_key() const { return by_key_; }
  int zero_bytes() const { return zero_bytes_; }

  // Per lane: the page of granule lane / 16 of the tile, or of key `lane`; any page if no key lives there. For listed
  // keys: the slot of key `lane`, page · keys of a page + row.
  language::Value* entries(language::Value* tile) const;

  bool is_listed() const { return list_.has_value(); }
  language::Value* listed(language::Value* tile) const;
  language::Value* resolved(language::Value* listed) const;
  // The same in two steps, so that the block table can answer in between. looked_up issues the loads of the table's
  // entries (without a table it returns the entries themselves); the second step gives the places of the keys.
  language::Value* looked_up(language::Value* listed) const;
  language::Value* resolved(language::Value* listed, language::Value* looked_up) const;
  // Which of the resolved entries name a key that the row sees: bit l is set for entry l (i64, uniform). Bits of
  // entries after the end of the list are set, too; the key length hides those.
  language::Value* named(language::Value* resolved) const;

  // `number`: 0 … 3, uniform. Rows have `row_bytes` bytes; rows past the length lie outside the buffer.
  language::Buffer granule(const Slice& slice, int row_bytes, language::Value* tile, language::Value* entries,
                           language::Value* number) const;

  // Granule `number` of the tile if it has a key that lives, else the last one before it that has (uniform).
  language::Value* living_granule(language::Value* tile, language::Value* number) const;

  // Per lane: the address (i64) of the first row of granule lane / 16.
  language::Value* lane_rows(const Slice& slice, language::Value* tile, language::Value* entries) const;
  // Per lane: `address` if `is_live`, else the address of zeros.
  language::Value* if_live(language::Value* is_live, language::Value* address) const;
  // Whether a key lives. `unseen`: for values (unseen_keys.h), keys that count as if they did not live. `exists`
  // (uniform): if it is false no key lives; null: true.
  language::Value* is_live(language::Value* tile, language::Value* in_tile, language::Value* unseen = nullptr,
                           language::Value* exists = nullptr) const;

  // Per lane, the place of key `in_tile` of the tile, where each key is looked up.
  struct KeyPlace {
    language::Value* page;    // of the cache
    language::Value* row;     // of the page; null: its only one
    language::Value* exists;  // the key lives
  };
  KeyPlace place_of_key(language::Value* tile, language::Value* entries, language::Value* in_tile,
                        language::Value* unseen = nullptr) const;
  // As place_of_key, for keys whose granules are looked up, too.
  KeyPlace place_of_any_key(language::Value* tile, language::Value* entries, language::Value* in_tile) const;
  // The address of byte `column` of the key's row, or the address of zeros.
  language::Value* row(const Slice& slice, const KeyPlace& place, language::Value* column) const;

 private:
  struct Place {
    language::Value* page;     // column of the sequence's pages
    language::Value* granule;  // of the page
  };
  Place place_of(language::Value* tile, language::Value* number) const;
  language::Value* address_of(const Slice& slice, language::Value* entry, language::Value* granule) const;
  language::Value* entry_of_key(language::Value* entries, language::Value* in_tile) const;
  // The place of a key: its slot in the sequence's pages, and the column of the block table.
  language::Value* slot_of(language::Value* tile, language::Value* in_tile) const;
  language::Value* column_of(language::Value* slot) const;

  // The place of a list entry: its page, its row there, and whether the row sees the key.
  KeyPlace place_in_list(language::Value* entry, language::Value* exists) const;

  language::Kernel& kernel_;
  bool by_key_;
  bool single_keys_;
  language::Value* first_slot_;
  language::Value* key_length_;
  language::Value* granules_of_page_;
  language::Value* multiplier_;
  language::Value* last_page_;  // of the cache
  int zero_bytes_;
  language::Value* zeros_;  // address
  language::Value* named_keys_;
  std::optional<language::Buffer> list_;
  std::optional<language::Buffer> table_;  // of this sequence, up to its last key that lives
};

// No value for dense keys, and for pages in which a wave looks up what it moves (tile_pages.h).
std::optional<KeyPages> pages_of(language::Kernel& kernel, const KeyLayout& layout, const KeyTensors& tensors,
                                 int zero_bytes = KeyPages::transfer_bytes);

}  // namespace wavejit::attention
