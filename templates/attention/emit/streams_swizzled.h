// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One tensor's tiles, swizzled (lds_layout.h): loaded into registers, and from there written to LDS in the order of
// later reads. A stream that is read by rows and transposed has two images, one for each.
//
// Rows: row-major, unit u (16 bytes) of row n at unit u xor (n % 8). Transposed: [dim][64 rows], unit u of dim d at
// unit u xor ((d xor d / 8) % 8); unit 2s + h of a dim holds the rows that lane group h needs of row block s, 16s + 4h
// …
// + 3 and 16s + 8 + 4h … + 3, so that one 16-byte read is one fragment in accumulator-row order. Reads and writes of 16
// bytes touch all banks once per eight lanes, writes of the transposed image (8 bytes) once per sixteen.
//
// A pass over a tile is what 256 threads load at once. Fewer threads make several passes, and hold more of the tile in
// flight. If these threads are one wave of a larger workgroup, each wave has a tile of its own.
//
// If memory holds 8 bits (CacheType), loads in flight hold these bytes, and the way into LDS widens them, so the images
// are the same. If the dims of a tensor need not be contiguous (scattered.h), elements are loaded one by one and packed
// on the way into LDS; lanes then own neighbouring rows, because these may be contiguous instead.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "codegen/language/convert.h"
#include "codegen/language/strand.h"
#include "templates/attention/emit/key_pages.h"
#include "templates/attention/emit/tile_pages.h"
#include "templates/attention/emit/tiles.h"

namespace wavejit::attention {

constexpr language::ByteElement byte_element_of(CacheType cache) {
  if (cache == CacheType::i8) return language::ByteElement::i8;
  return cache == CacheType::e5m2 || cache == CacheType::e5m2_fnuz ? language::ByteElement::e5m2
                                                                   : language::ByteElement::e4m3;
}

// Widens eight bytes, <2 x i32>, to the dwords of an operand.
language::Value* widened_fragment(language::Kernel& kernel, language::Value* bytes, CacheType cache,
                                  language::Element element);

// The common part of both images.
class SwizzledStream : public TileStream {
 public:
  // The steps one by one: this thread's part of a tile into registers, and from there into LDS in operations of about
  // one issue slot. For keys in pages of whole tiles, `place` is the page that was looked up. `unseen`: for values
  // (unseen_keys.h), zeros come in place of rows that are not seen.
  language::Values fetch(language::Value* tile, const TilePages::Place& place, language::Value* unseen = nullptr);
  // Loads keys that are looked up, in granules or one by one.
  virtual language::Values fetch_from_pages(language::Value* tile, language::Value* entries,
                                            language::Value* unseen = nullptr) = 0;
  virtual language::Strand write(const language::Values& loaded) = 0;
  // The loads of this thread's part one by one, for callers that put other work between them.
  using Load = std::function<language::Value*()>;
  int loads() const { return static_cast<int>(loads_.size()); }
  // Registers, or tuples of them, that fetch returns.
  int values_in_flight() const { return loads() * elements_of_load(); }

 protected:
  // The image lies at `offset` in LDS, in a region of its own. `pages` must stay.
  SwizzledStream(language::Kernel& kernel, language::Lds& lds, const language::MatrixUnit& matrix, const Slice& slice,
                 int region, int offset, int dims, int threads, const std::optional<KeyPages>& pages,
                 const std::optional<TilePages>& tile_pages, CacheType cache, int dims_kept = 0);
  static constexpr int pass_threads = 256;
  static constexpr int unit_bytes = 16;
  static constexpr int units_swizzled = 8;  // 8 units of 16 bytes are all 32 banks
  bool widens() const { return cache_ != CacheType::as_queries; }
  language::ByteElement byte_element() const { return byte_element_of(cache_); }
  // Four of the 16 bytes of a load, from `dword` on, as LDS will hold them.
  std::array<language::Value*, 2> widened(language::Value* loaded, int dword) const;
  // Half of a load (0 or 1), widened to 16 bytes of LDS.
  language::Value* widened_unit(language::Value* loaded, int half) const;
  language::Value* scaled_unit(language::Value* loaded, int half, language::Value* scale) const;
  // As widened_unit, multiplied by a power of two, which is E8M0 in the lane's low 8 bits.
  language::Value* raised_unit(language::Value* loaded, int half, language::Value* exponent) const;
  // How many loads come in place of one: if the dims of a tensor need not be contiguous, each element is loaded by
  // itself.
  int elements_of_load() const { return slice_.scattered() ? width_ / slice_.element_bytes : 1; }
  language::Values fetch_scattered(language::Value* tile, language::Value* unseen);
  // Packs the loads in flight of single elements into whole loads.
  language::Values packed(const language::Values& loaded) const;
  int passes() const { return pass_threads / threads_; }
  bool looks_up_each_key() const { return pages_ && pages_->looks_up_each_key(); }
  // A load from granule `number` of the tile, whose first `unseen` keys no row sees.
  language::Value* load_of_granule(const language::Buffer& granule, std::size_t load, language::Value* number,
                                   language::Value* unseen) const;
  void refuse(const char* way) const;

  language::Kernel& kernel_;
  language::Lds& lds_;
  const language::MatrixUnit& matrix_;
  Slice slice_;
  int region_;
  int offset_;
  CacheType cache_;
  // Per lane: loads of a row begin at `column` bytes, or far outside the descriptor if the row ends before. Keys that
  // are looked up have an address in place of a descriptor, and `exists` says whether they are read.
  language::Value* in_row(language::Value* offset, language::Value* column) const;
  language::Value* is_in_row(language::Value* exists, std::size_t load) const;

  int pitch_;         // bytes of a row in LDS, where rows follow each other
  int memory_pitch_;  // bytes of a row in memory
  // The bytes of a row that all of its threads load at once. More than memory_pitch_ if only that gives each thread the
  // same number of loads.
  int loaded_pitch_;
  int dims_kept_;  // the last dims of a row of bytes, which memory holds in 16 bits
  int threads_;
  const std::optional<KeyPages>& pages_;
  int width_ = 0;                        // bytes of a lane's load
  std::vector<language::Value*> loads_;  // per lane, where each load begins
  // For keys that are looked up one by one: which keys of the tile these are. The elements of loads_ are then places
  // within a row.
  std::vector<language::Value*> keys_;
  std::vector<language::Value*> rows_;  // of scattered elements: the row of the tile for each load
  language::Value* write_ = nullptr;
  // Lane addresses of fragment reads, one for each value of the swizzled unit bits that the offset of an instruction
  // cannot express.
  std::vector<language::Value*> read_;
  const std::optional<TilePages>& tile_pages_;
};

// The shape of a load by all lanes: runs of a row that are as long as possible, or a short run of each row, so that all
// loads of a thread belong to one row.
enum class Runs : std::uint8_t { long_ones, row_a_thread };

// Loads of 16 bytes along rows, for either image; of 8 bytes if a tile has no more for each thread.
class RowLoads : public SwizzledStream {
 public:
  language::Values fetch_from_pages(language::Value* tile, language::Value* entries,
                                    language::Value* unseen = nullptr) override;
  // The loads of a tile that is walked. `place` and `entries` are those of fetch and fetch_from_pages. If `exists`
  // (uniform) is false the loads read nothing.
  std::vector<Load> loads_of(language::Value* tile, const TilePages::Place& place, language::Value* entries,
                             language::Value* exists);

 protected:
  RowLoads(language::Kernel& kernel, language::Lds& lds, const language::MatrixUnit& matrix, const Slice& slice,
           int region, int offset, int dims, int threads, const std::optional<KeyPages>& pages,
           const std::optional<TilePages>& tile_pages, CacheType cache, int dims_kept = 0, Runs runs = Runs::long_ones);

  // The place of load i relative to the thread's first: rows, and units in memory.
  std::pair<int, int> place_of(int i) const;
  // How many loads cover a row.
  int units() const { return loaded_pitch_ / width_; }
  // How many neighbouring lanes load one row: the largest power of two that divides units(), or the number of threads
  // that each row has.
  int run() const { return runs_ == Runs::row_a_thread ? threads_ / tile_keys : units() & -units(); }
  int rows_apart() const { return (by_granules_of_waves() ? kernel_.target().wave_size : threads_) / run(); }
  // The row and the unit of the thread's first load.
  language::Value* first_row_ = nullptr;
  language::Value* first_unit_ = nullptr;

 private:
  language::Values fetch_single(language::Value* tile, language::Value* entries, language::Value* unseen);
  // Granule `number`, counted from the granule of this wave's first load.
  language::Value* granule_of(int number) const;
  bool by_rows_of_lanes() const { return slice_.scattered(); }
  bool by_granules_of_waves() const { return tile_pages_ && tile_pages_->by_wave(); }
  Runs runs_;
};

class SwizzledRows final : public RowLoads {
 public:
  SwizzledRows(language::Kernel& kernel, language::Lds& lds, const language::MatrixUnit& matrix, const Slice& slice,
               int region, int offset, int dims, int threads, language::Value* lane_group,
               const std::optional<KeyPages>& pages, const std::optional<TilePages>& tile_pages,
               CacheType cache = CacheType::as_queries, int dims_kept = 0, Runs runs = Runs::long_ones);

  // For a wave that reads other rows than the tile's first: its blocks of rows begin at `block` (uniform).
  void begin_rows(language::Value* block);
  // For images that change places: where the lane's reads begin, followed by where its writes begin.
  language::Values starts() const;
  static constexpr std::size_t start_count = 5;
  void set_starts(const language::Values& starts);
  language::Strand write(const language::Values& loaded) override;
  // Writes loads from `first` on as if load `origin`, which begins at a multiple of 8 rows, were the tile's first.
  void write_first_rows(std::span<language::Value* const> loaded, int first, int origin);
  // For 8 bits that have scales: LDS will hold round(byte · scale). `scale_of` gives the lane's f32 scale of load i; it
  // is called once for each load.
  using ScaleOf = std::function<language::Value*(int load)>;
  language::Strand write_scaled(const language::Values& loaded, const ScaleOf& scale_of);
  // For 8 bits whose last `dims_kept` dims memory holds in 16 bits: the row of the thread's loads, all of which are of
  // one row; and the writes of load i into LDS, with their number of operations. `exponents`: two dwords of the row's
  // exponents, E8M0.
  language::Value* row_of_thread() const { return first_row_; }
  bool has_row_a_thread() const { return rows_apart() == tile_keys; }
  int writes_of(int load) const { return is_kept(load) ? 1 : 2; }
  language::Strand write_raised(const language::Values& loaded, language::Value* exponents);
  language::OperandA rows(int buffer, int row_block, int dim_block) override;
  language::OperandA transposed(int buffer, int dim_block, int row_block) override;

 private:
  // Writes bytes of load i into LDS: half of the load if it is widened, else all of it.
  void write_unit(language::Value* dwords, int load, int half, int rows_before = 0);
  bool is_kept(int load) const { return dims_kept_ != 0 && place_of(load).second >= units_of_bytes(); }
  int units_of_bytes() const { return units() - (dims_kept_ * targets::bytes_of(matrix_.element()) / width_); }
  void write_kept(language::Value* dwords, int load);
  language::Value* to_kept_ = nullptr;  // per lane: xor from the place of widened bytes to the place of kept dims
};

class SwizzledTransposed final : public SwizzledStream {
 public:
  SwizzledTransposed(language::Kernel& kernel, language::Lds& lds, const language::MatrixUnit& matrix,
                     const Slice& slice, int region, int offset, int dims, int threads, language::Value* lane_group,
                     const std::optional<KeyPages>& pages, const std::optional<TilePages>& tile_pages,
                     CacheType cache = CacheType::as_queries);

  language::Values fetch_from_pages(language::Value* tile, language::Value* entries,
                                    language::Value* unseen = nullptr) override;
  language::Strand write(const language::Values& loaded) override;
  language::OperandA rows(int buffer, int row_block, int dim_block) override;
  language::OperandA transposed(int buffer, int dim_block, int row_block) override;

 private:
  // Bytes of one dim in the transposed image: the keys of a tile.
  int transposed_row_bytes() const { return tile_keys * targets::bytes_of(matrix_.element()); }
  // Loads of a block of dims. The loads of one block follow those of another.
  int rows_of_block() const;
  struct Granule {
    language::Buffer rows;
    language::Value* number;
  };
  language::Value* load_of(const std::vector<Granule>& granules, std::size_t load, language::Value* unseen) const;
  // The elements of two neighbouring rows of `loaded` in one dim, as a dword.
  language::Value* pair_of(const language::Values& loaded, int row, int dim) const;
  language::Value* pair_of_bytes(const language::Values& loaded, int row, int dim) const;

  // Each thread transposes blocks of 4 rows × dims_per_thread_ dims: blocks_of_row_ of them along its rows in each
  // pass.
  int blocks_of_row_;
  int dims_per_thread_;
};

}  // namespace wavejit::attention
