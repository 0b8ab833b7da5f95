// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One tensor's tiles, swizzled (lds_layout.h): loaded into registers, from there written to LDS as they will be read.
// Rows and transposed are two images; a stream that is read both ways has both.
//
// Rows: row-major, unit u (16 bytes) of row n at unit u xor (n % 8). Transposed: [dim][64 rows], unit u of dim d at
// unit u xor ((d xor d / 8) % 8); unit 2s + h of a dim holds the rows that lane group h needs of row block s, 16s + 4h
// …
// + 3 and 16s + 8 + 4h … + 3, so that one 16-byte read is one fragment in accumulator-row order. Reads and writes of 16
// bytes touch all banks once per eight lanes, writes of the transposed image (8 bytes) once per sixteen.
//
// A pass over a tile is what 256 threads do at once. Fewer threads make several, and hold more of the tile in flight.
#pragma once

#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "codegen/language/strand.h"
#include "templates/attention/emit/key_pages.h"
#include "templates/attention/emit/tile_pages.h"
#include "templates/attention/emit/tiles.h"

namespace wavejit::attention {

// What the two images have alike.
class SwizzledStream : public TileStream {
 public:
  // Single steps: this thread's part of a tile on its way into registers, and from there into LDS in operations of
  // about one issue slot. Keys in pages of whole tiles have a `place`, which was looked up.
  language::Values fetch(language::Value* tile, const TilePages::Place& place);
  // Of keys that are looked up, in granules or one by one.
  virtual language::Values fetch_from_pages(language::Value* tile, language::Value* entries) = 0;
  virtual language::Strand write(const language::Values& loaded) = 0;
  // Loads of the thread's part one by one, for who puts other work between them.
  using Load = std::function<language::Value*()>;
  int loads() const { return static_cast<int>(loads_.size()); }

 protected:
  // The image stands at `offset` in LDS, in a region of its own. `pages` must stay.
  SwizzledStream(language::Kernel& kernel, language::Lds& lds, const language::MatrixUnit& matrix, const Slice& slice,
                 int region, int offset, int row_bytes, int threads, const std::optional<KeyPages>& pages,
                 const std::optional<TilePages>& tile_pages);
  static constexpr int pass_threads = 256;
  static constexpr int unit_bytes = 16;
  int passes() const { return pass_threads / threads_; }
  bool looks_up_each_key() const { return pages_ && pages_->looks_up_each_key(); }
  void refuse(const char* way) const;

  language::Kernel& kernel_;
  language::Lds& lds_;
  const language::MatrixUnit& matrix_;
  Slice slice_;
  int region_;
  int offset_;
  int pitch_;  // bytes from row to row, in memory
  int threads_;
  const std::optional<KeyPages>& pages_;
  int width_ = 0;                        // bytes of a lane's load
  std::vector<language::Value*> loads_;  // per lane, where each begins
  // Of keys that are looked up one by one: which keys of the tile these are; loads_ then are places in a row.
  std::vector<language::Value*> keys_;
  language::Value* write_ = nullptr;
  // Lane addresses of fragment reads for each value of the swizzled unit bits that a constant cannot express.
  std::vector<language::Value*> read_;
  const std::optional<TilePages>& tile_pages_;
};

class SwizzledRows final : public SwizzledStream {
 public:
  SwizzledRows(language::Kernel& kernel, language::Lds& lds, const language::MatrixUnit& matrix, const Slice& slice,
               int region, int offset, int dims, int threads, language::Value* lane_group,
               const std::optional<KeyPages>& pages, const std::optional<TilePages>& tile_pages);

  language::Values fetch_from_pages(language::Value* tile, language::Value* entries) override;
  // A wave that reads other rows than the tile's first: its blocks of rows count from `block` (uniform) on.
  void begin_rows(language::Value* block);
  // Of a tile that is walked. `place`, `entries`: as fetch and fetch_from_pages have them. Where `exists` (uniform) is
  // false they read nothing.
  std::vector<Load> loads_of(language::Value* tile, const TilePages::Place& place, language::Value* entries,
                             language::Value* exists);
  language::Strand write(const language::Values& loaded) override;
  language::OperandA rows(int buffer, int row_block, int dim_block) override;
  language::OperandA transposed(int buffer, int dim_block, int row_block) override;

 private:
  language::Values fetch_single(language::Value* tile, language::Value* entries);
  // Granule `number` of a tile, counted from the first one of this wave's loads.
  language::Value* granule_of(int number) const;
  std::pair<int, int> place_of(int i) const;  // rows, units
  // Loads are runs of so many units of a row: all of them, or 8 where a row is no power of two.
  int units() const { return pitch_ / unit_bytes; }
  int run() const { return units() & -units(); }
  int rows_apart() const { return threads_ / run(); }
};

class SwizzledTransposed final : public SwizzledStream {
 public:
  SwizzledTransposed(language::Kernel& kernel, language::Lds& lds, const language::MatrixUnit& matrix,
                     const Slice& slice, int region, int offset, int dims, int threads, language::Value* lane_group,
                     const std::optional<KeyPages>& pages, const std::optional<TilePages>& tile_pages);

  language::Values fetch_from_pages(language::Value* tile, language::Value* entries) override;
  language::Strand write(const language::Values& loaded) override;
  language::OperandA rows(int buffer, int row_block, int dim_block) override;
  language::OperandA transposed(int buffer, int dim_block, int row_block) override;

 private:
  // The keys of a tile, of one dim.
  int transposed_row_bytes() const { return tile_keys * targets::bytes_of(matrix_.element()); }

  int dims_per_thread_;  // a thread transposes a block of 4 rows × this many dims, in each pass
};

}  // namespace wavejit::attention
