// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Where a tile of keys stands when pages hold whole tiles (KeyLayout::whole_tiles): in one page, which one entry of
// the block table names. All of it is uniform.
//
//   look_up   the table's entry, which is loaded, and what else both K and V need. Issue it a tile before it is needed.
//   rows      a buffer that begins at the tile's first key and ends with its last live one
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
  TilePages(language::Kernel& kernel, const KeyTensors& tensors);

  // As a walk carries it.
  struct Place {
    language::Value* entry = nullptr;    // of the block table
    language::Value* granule = nullptr;  // of the page, where the tile begins
    language::Value* live = nullptr;     // keys
  };
  using Way = schedule::LookUp::Way;
  // `tile`: one that is walked.
  Place look_up(language::Value* tile, Way way) const;
  language::Buffer rows(const Slice& slice, int row_bytes, const Place& place) const;

 private:
  language::Kernel& kernel_;
  language::Value* key_length_;
  language::Value* granules_of_page_;
  language::Value* multiplier_;
  language::Value* last_page_;   // of the cache
  language::Value* any_key_;     // 1, or 0 of an empty sequence
  language::Value* table_;       // address
  language::Value* last_entry_;  // of the sequence
};

// Nothing for dense keys.
std::optional<TilePages> tile_pages_of(language::Kernel& kernel, const KeyLayout& layout, const KeyTensors& tensors);

}  // namespace wavejit::attention
