// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Swizzled tiles (lds_layout.h): loaded into registers, written to the one LDS buffer; V transposed on the way in.
//
// K: row-major, unit u (16 bytes) of key n at unit u xor (n % 8). V: [dim][64 keys], unit u of dim d at unit
// u xor ((d xor d / 8) % 8); unit 2s + h of a row holds the keys that lane group h needs of key block s, 16s + 4h … + 3
// and 16s + 8 + 4h … + 3, so that one 16-byte read is one fragment in accumulator-row order. Reads and writes of 16
// bytes touch all banks once per eight lanes, writes of V (8 bytes) once per sixteen.
//
// A pass over a tile is what 256 threads do at once. Fewer threads make several, and hold more of the tile in flight.
#pragma once

#include <optional>
#include <utility>

#include "codegen/language/strand.h"
#include "templates/attention/emit/key_pages.h"
#include "templates/attention/emit/tile_pages.h"
#include "templates/attention/emit/tiles.h"

namespace wavejit::attention {

class SwizzledTiles final : public Tiles {
 public:
  SwizzledTiles(language::Kernel& kernel, const TileShape& shape, const LdsPlan& plan, const KeyTensors& tensors,
                language::Value* lane_group, const language::MatrixUnit& matrix);

  language::Values start(language::Value* tile) override;
  language::Values advance(int buffer, language::Value* tile, language::Value* tiles,
                           const language::Values& in_flight) override;
  // Single steps, for a pipeline that places waits and barriers itself: this thread's part of a tile on its way into
  // registers, and from there into LDS in operations of about one issue slot.
  // Keys in pages of whole tiles have a `place`, which was looked up.
  TilePages::Place look_up(language::Value* tile, TilePages::Way way) const { return tile_pages_->look_up(tile, way); }
  language::Values fetch_keys(language::Value* tile, const TilePages::Place& place);
  language::Values fetch_values(language::Value* tile, const TilePages::Place& place);
  language::Strand write_keys(const language::Values& loaded);
  language::Strand write_values(const language::Values& loaded);

  language::OperandA keys(int buffer, int key_block, int dim_block) override;
  language::OperandA values_transposed(int buffer, int dim_block, int key_block) override;

 private:
  static constexpr int k_region = 0;
  static constexpr int v_region = 1;

  // The rows of a tile from where `offset` in `from` says that it begins.
  language::Values load_keys(const language::Buffer& from, language::Value* offset);
  language::Values load_values(const language::Buffer& from, language::Value* offset);
  language::Value* dense_offset(const Slice& slice, language::Value* tile) const;
  // The whole tile; of keys in pages behind it the entries of the next one.
  language::Values load(language::Value* tile, language::Value* entries);
  // Loads of rows that stand in one granule of a page each.
  language::Values load_keys(language::Value* tile, language::Value* entries);
  language::Values load_values(language::Value* tile, language::Value* entries);
  // Loads of keys that are looked up one by one.
  language::Values load_single_keys(language::Value* tile, language::Value* entries);
  language::Values load_single_values(language::Value* tile, language::Value* entries);
  std::pair<int, int> k_place(int i) const;  // rows, units
  // Number of loads of K; those of V follow in the in-flight values.
  // K is loaded in runs of so many units of a row: all of them, or 8 where a row is no power of two.
  int k_units() const { return k_row_bytes_ / 16; }
  int k_run() const { return k_units() & -k_units(); }
  int k_rows_apart() const { return threads_ / k_run(); }
  static constexpr int pass_threads = 256;
  int passes() const { return pass_threads / threads_; }
  int k_loads() const { return k_units() * tile_keys / threads_; }

  language::Kernel& kernel_;
  LdsPlan plan_;
  Slice k_;
  Slice v_;
  const language::MatrixUnit& matrix_;
  language::Lds lds_;
  int threads_;
  int k_row_bytes_;
  std::optional<KeyPages> pages_;
  std::optional<TilePages> tile_pages_;
  int v_key_bytes_;        // of a key as it is loaded
  int v_dims_per_thread_;  // a thread transposes a block of 4 keys × this many dims, in each pass
  std::vector<language::Value*> k_load_;
  std::vector<language::Value*> v_load_;
  // Which keys of the tile these are, and where in a row they begin, of keys that are looked up one by one.
  std::vector<language::Value*> k_keys_;
  std::vector<language::Value*> v_keys_;
  language::Value* k_write_;
  language::Value* v_write_;
  // Lane addresses of fragment reads for each value of the swizzled unit bits that a constant cannot express.
  std::vector<language::Value*> k_read_;
  std::vector<language::Value*> v_read_;
};

}  // namespace wavejit::attention
