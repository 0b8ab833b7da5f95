// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Where the 16-byte units of a tile stand in vectorised pages (kernel/page_arguments.h): 8 dims of one key of K, 8 keys
// of one dim of V.
//
// A wave loads a line at once, the tile's 64 keys × 8 dims, 16 bytes a lane. 16 lanes stand in one granule, so that one
// look-up finds them all (key_pages.h), and what they read lies side by side in either layout of V:
//
//   line c of K   dims 8c … 8c + 7; lane = key
//   line c of V   lane 16g + r: dim 8c + r / 2, keys 16g + 8e … 16g + 8e + 7 with e = r % 2 xor r / 8
//
// (xor r / 8: so eight neighbouring dims, 32 bytes apart, touch twice as many banks.) Wave w has the lines w, w +
// waves, …
#pragma once

#include <cstdint>

#include "templates/attention/emit/key_pages.h"
#include "templates/attention/kernel/canon.h"

namespace wavejit::attention {

class VectorisedPages {
 public:
  static constexpr int unit_bytes = 16;
  static constexpr int unit_elements = 8;
  static constexpr int bytes_of_element = 2;
  static constexpr int keys_of_tile = tile_keys;
  static constexpr int line_bytes = keys_of_tile * unit_bytes;

  VectorisedPages(language::Kernel& kernel, const TileShape& shape, const KeyTensors& tensors);

  // As KeyPages::entries.
  language::Value* entries(language::Value* tile) const { return pages_.entries(tile); }

  // Per lane: the addresses (i64) of its units in this wave's lines; of zeros where no key lives.
  language::Values key_lines(language::Value* tile, language::Value* entries) const;
  language::Values value_lines(language::Value* tile, language::Value* entries,
                               language::Value* unseen = nullptr) const;

  int waves() const { return waves_; }
  int k_lines() const { return k_lines_ / waves_; }  // of a wave
  int v_lines() const { return v_lines_ / waves_; }

  // Per lane, of V: the unit's granule, its dim of the line, and which unit of the granule it is.
  language::Value* granule() const { return granule_; }
  language::Value* dim_of_line() const { return dim_; }
  language::Value* half() const { return half_; }

  // Uniform: the last live key of the sequence stands in the tile, and keys behind it in the same unit of V.
  language::Value* ends_inside_unit(language::Value* tile) const;
  // A lane's units of V with zeros for the keys that do not live: 0 times NaN would be NaN.
  language::Values cut(language::Value* tile, const language::Values& units) const;

  // Keys of the first tile that no row sees (unseen_keys.h), uniform. Where they end inside a unit (uniform), its zeros
  // are to be made once it is there.
  language::Value* unseen_of(language::Value* tile) const;
  language::Value* begins_inside_unit(language::Value* unseen) const;
  language::Values cut_unseen(language::Value* unseen, const language::Values& units) const;

 private:
  language::Value* live_keys(language::Value* tile) const;
  language::Value* first_key_of_unit() const;  // per lane, of V: counted in the tile
  // Units with zeros for the keys before `edge`, counted in the unit, or for those from it on.
  enum class Side : std::uint8_t { before, from };
  language::Values without(Side side, language::Value* edge, const language::Values& units) const;
  // `first` and the units `step` (i32, bytes) behind it, of as many lines.
  language::Values lines(language::Value* is_live, language::Value* first, language::Value* step, int count) const;

  language::Kernel& kernel_;
  KeyPages pages_;
  Slice k_;
  Slice v_;
  int waves_;
  int k_lines_;
  int v_lines_;
  language::Value* key_length_;
  language::Value* first_seen_;
  language::Value* granule_;
  language::Value* dim_;
  language::Value* half_;
  language::Value* k_line_stride_;  // bytes, uniform
  language::Value* v_dim_stride_;
};

}  // namespace wavejit::attention
