// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Where the keys of a tile that a wave moves stand in one page, which one entry of the block table names. All of it is
// uniform.
//
//   whole_tiles    pages hold whole tiles: every wave looks up the tile
//   wave_granules  pages hold granules of 16 keys, whatever their size: each wave moves rows of one granule only, waves
//                  in their order those of granules in theirs, and looks that up
//
//   look_up   the table's entry, which is loaded, and what else both K and V need. Issue it a tile before it is needed.
//   rows      a buffer that begins at the first of these keys and ends with the last live one
//
// Nothing that the device's arrays say leads outside: entries past the sequence's pages are not read, those that are
// read are cut to the pages of the cache, and keys past the sequence's length read as zero.
#pragma once

#include <optional>

#include "templates/attention/emit/schedule.h"
#include "templates/attention/emit/slice.h"
#include "templates/attention/kernel/types.h"

namespace wavejit::attention {

class TilePages {
 public:
  // `waves`: which move a tile's rows.
  TilePages(language::Kernel& kernel, const KeyLayout& layout, const KeyTensors& tensors, int waves);

  // As a walk carries it.
  struct Place {
    language::Value* entry = nullptr;    // of the block table
    language::Value* granule = nullptr;  // of the page, where these keys begin
    language::Value* live = nullptr;     // keys
    void each(this auto& place, auto visit) {
      visit(place.entry);
      visit(place.granule);
      visit(place.live);
    }
  };
  using Way = schedule::LookUp::Way;
  // `tile`: one that is walked.
  Place look_up(language::Value* tile, Way way) const;
  language::Buffer rows(const Slice& slice, int row_bytes, const Place& place) const;

  // How many of the tile's unseen first keys (unseen_keys.h) `rows` begins with; null: none.
  language::Value* unseen_of_rows(language::Value* unseen) const;

  // Each wave has rows of one granule: `keys_of_wave` of them from its number times that on.
  bool by_wave() const { return by_wave_; }
  int keys_of_wave() const { return keys_of_wave_; }

 private:
  language::Value* granule_of_wave() const;
  language::Value* granule_of_tile(language::Value* tile) const;
  // From the first of these keys up to the sequence's last.
  language::Value* keys_left(language::Value* tile) const;

  language::Kernel& kernel_;
  bool by_wave_;
  int keys_of_wave_;
  language::Value* key_length_;
  language::Value* granules_of_page_;
  language::Value* multiplier_;
  language::Value* last_page_;   // of the cache
  language::Value* any_key_;     // 1, or 0 of an empty sequence
  language::Value* table_;       // address
  language::Value* last_entry_;  // of the sequence
};

// Nothing for dense keys, and for pages that are looked up otherwise (key_pages.h).
std::optional<TilePages> tile_pages_of(language::Kernel& kernel, const KeyLayout& layout, const KeyTensors& tensors,
                                       int waves = 1);

}  // namespace wavejit::attention
