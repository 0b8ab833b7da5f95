// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One tensor's tiles in lines (lds_layout.h), filled by 16-byte LDS DMA: read by rows, or transposed by the read.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <vector>

#include "templates/attention/emit/key_pages.h"
#include "templates/attention/emit/tile_pages.h"
#include "templates/attention/emit/tiles.h"

namespace wavejit::attention {

// Images whose lines have neighbouring rows, by how they are read.
enum class NeighbourRows : std::uint8_t { none, by_rows, transposed };

class LineStream final : public TileStream {
 public:
  // Where its buffers stand in the kernel's LDS. A region is one alias scope (codegen/language/lds.h).
  struct Place {
    struct Buffer {
      int region;
      int offset;  // bytes
    };
    int line_bytes;
    std::array<Buffer, 2> buffers;
    // One image is read both ways: units are permuted, and no padding is needed (kernel/lds_layout.h). Where reads
    // start then follows from enter_rows and enter_transposed.
    bool permuted = false;
    // Memory and LDS hold bytes, which whoever reads them widens: keys_of_bytes and transposed_keys read them.
    bool bytes = false;
    // Rows take whole pieces, also those that are none: of 16 bits, and what threads write (streams_narrow.h).
    bool whole_pieces = false;
    // The caller that reads has waited for the transfers by itself (codegen/language/synchronize.h): the backend, which
    // follows every way through a loop, also those that are never taken, adds no wait in front of reads.
    bool waited_for = false;
    // Each wave fills whole images of its own, of which `fetch` and `transfers_of_line` are told. With `waves` = 1.
    bool own_images = false;
    // A line has neighbouring rows of one granule, which wave_granules asks for (kernel/lds_layout.h).
    NeighbourRows neighbours = NeighbourRows::none;
  };
  // `waves` fill it together. `pages`: of keys whose granules or keys are looked up; all of them must stay.
  LineStream(language::Kernel& kernel, language::Lds& lds, const language::MatrixUnit& matrix, const Slice& slice,
             const Place& place, int dims, int waves, const std::optional<KeyPages>& pages,
             const std::optional<TilePages>& tile_pages);

  // Where a lane's reads start, made once before the first of them. A wave that reads other rows than the tile's first
  // begins at block `first_row_block` (uniform).
  void begin_rows(language::Value* lane_group, language::Value* first_row_block = nullptr);
  void begin_transposed(language::Value* lane_group);
  // The same for bytes, in place of it.
  void begin_transposed_bytes(language::Value* lane_group);
  // The same of a wave whose dims begin with piece `first_piece` (uniform) of a row: dim blocks count from there.
  void begin_transposed(language::Value* lane_group, language::Value* first_piece);
  // The same of a permuted image of bytes, by the first dim.
  void begin_narrow_transposed(language::Value* lane_group, language::Value* first_dim);

  // Called before the reads of a buffer of a permuted image. Their addresses are made here, and live until the last of
  // them.
  void enter_rows(language::Value* image);
  void enter_transposed(language::Value* image);

  // A tile on its way into a buffer, in transfers() DMA instructions of this wave. Keys in pages of whole tiles have a
  // `place`, which was looked up. Here and below `unseen`: of values (unseen_keys.h), zeros come in place of them.
  void fetch(int buffer, language::Value* tile, const TilePages::Place& place = {}, language::Value* unseen = nullptr);
  // The same into the image that begins `image` bytes (uniform) behind the first buffer.
  void fetch(language::Value* image, language::Value* tile, const TilePages::Place& place = {},
             language::Value* unseen = nullptr);
  int transfers() const { return lines_of_piece() / waves_ * pieces_; }
  // Where registers are short: a lane keeps one offset a line, and makes those of the pieces anew for each tile.
  void keep_few_offsets() { few_offsets_ = true; }
  // The transfers of one of the wave's lines (0 … lines() − 1), one by one, for callers that put other work between
  // them. `entries`: of keys that are looked up in granules or one by one. Where `exists` (uniform) is false they read
  // nothing, and zeros arrive.
  using Transfer = std::function<void()>;
  std::vector<Transfer> transfers_of_line(language::Value* image, language::Value* tile, const TilePages::Place& place,
                                          language::Value* entries, std::size_t line, language::Value* exists,
                                          language::Value* unseen = nullptr);
  // The same of rows that stand anywhere in the slice: `begins(row)`, of a lane's row of the image, says where.
  std::vector<Transfer> transfers_of_rows(language::Value* image, std::size_t line,
                                          const std::function<language::Value*(language::Value* row)>& begins);
  std::size_t lines() const { return static_cast<std::size_t>(lines_of_piece() / waves_); }
  // The same of keys in pages: each lane with its granule's row, or each line with its keys' places.
  void gather(int buffer, language::Value* tile, language::Value* entries, language::Value* unseen = nullptr);
  std::vector<KeyPages::KeyPlace> places_of_lines(language::Value* tile, language::Value* entries,
                                                  language::Value* unseen = nullptr) const;
  void gather(int buffer, const std::vector<KeyPages::KeyPlace>& places);

  // The reads of a permuted image of bytes: what `rows` and `transposed` have, 8 bytes a lane (<2 x i32>), not widened.
  language::Value* narrow_rows(int buffer, int row_block, int dim_block);
  language::Value* narrow_transposed(int buffer, int dim_block, int row_block);

  language::OperandA rows(int buffer, int row_block, int dim_block) override;
  // Where a lane's reads by rows start in an image that begins `image` bytes behind the first buffer, and the reads.
  language::Value* rows_start(language::Value* image) const;
  language::OperandA rows(language::Value* start, int row_block, int dim_block);
  language::OperandA transposed(int buffer, int dim_block, int row_block) override;
  language::Value* transposed_bytes(int buffer, int dim_block, int row_block) override;
  language::Value* transposed_bytes(language::Value* start, int dim_block, int row_block);
  // The same from a buffer that is known at run time only: where a lane's reads start in it, and the reads. These wait
  // for every transfer that is in flight.
  language::Value* transposed_start(language::Value* buffer);
  // The same of an image.
  language::Value* transposed_start_in(language::Value* image) const;
  language::OperandA transposed(language::Value* start, int dim_block, int row_block);

 private:
  static constexpr int dma_bytes = 16;  // per lane
  static constexpr int slot_bytes = LdsPlan::piece_bytes;

  // Row of lane `slot`'s 16 bytes on line `line` of this wave: of the tile, or of its granule.
  language::Value* row_of(language::Value* slot, int line) const;
  language::Value* slot() const;
  // A row of bytes may be half a piece, or have an odd number of halves: sixteen of these then stand on each of four
  // lines. Whole pieces may have a last one that is partly empty.
  int piece_bytes() const {
    const bool whole = place_.whole_pieces ||
                       (place_.permuted ? row_bytes_ >= LdsPlan::piece_bytes : row_bytes_ % LdsPlan::piece_bytes == 0);
    return whole ? LdsPlan::piece_bytes : LdsPlan::piece_bytes / 2;
  }
  int lines_of_piece() const { return LdsPlan::lines_per_piece * piece_bytes() / LdsPlan::piece_bytes; }
  bool has_neighbours() const { return place_.neighbours != NeighbourRows::none; }
  // What stands in slot `slot` of line `line` has its units at these, xor.
  language::Value* neighbour_key(language::Value* line, language::Value* slot) const;
  // Eight rows further, in a transposed read.
  int eight_rows_bytes() const { return has_neighbours() ? place_.line_bytes : slot_bytes; }
  bool has_halves() const { return piece_bytes() < LdsPlan::piece_bytes; }
  int row_block_bytes() const;  // keys 32 further
  // The same of a granule, where lines have neighbouring rows.
  language::Value* row_of_granule(language::Value* slot) const;
  void begin_neighbour_rows(language::Value* row, language::Value* lane_group);
  // What a row on line `line` changes of its slot, and one at slot `slot` of it of its units.
  language::Value* slot_bit_of(language::Value* line) const;
  language::Value* unit_key_of(language::Value* line, language::Value* slot) const;
  language::Value* unit_of_lane() const;
  // For reads from a buffer that is known at run time only.
  int read_region() const { return place_.waited_for ? at(0).region : language::Lds::any_region; }
  int fill_region(int buffer) const { return place_.waited_for ? language::Lds::any_region : at(buffer).region; }
  void fill(language::Value* lds_line, int buffer, language::Value* tile, const TilePages::Place& place,
            language::Value* unseen);
  const Place::Buffer& at(int buffer) const { return place_.buffers[static_cast<std::size_t>(buffer)]; }
  int line_offset(int piece, int line) const;
  // Per lane: where it fetches in a piece of the row that begins at `row`; outside where the row ends before. What is
  // looked up has an address in place of a descriptor, and is asked with `exists`.
  language::Value* in_piece(language::Value* row, int piece) const;
  language::Value* is_in_row(language::Value* exists, int piece) const;
  language::Value* has_bytes() const;
  // The pieces' offsets of the wave's lines in turn.
  std::vector<language::Value*> offsets_of_line(std::size_t line) const;
  // All of a line's offsets far outside where its row is not seen, which the first of them tells.
  void leave_out_unseen(std::vector<language::Value*>& offsets, language::Value* unseen) const;
  language::Value* transposed_bytes_at(int region, language::Value* start, int offset, int dim_block, int row_block);
  language::OperandA transposed_at(int region, language::Value* start, int offset, int dim_block, int row_block);

  language::Kernel& kernel_;
  language::Lds& lds_;
  const language::MatrixUnit& matrix_;
  Slice slice_;
  Place place_;
  int row_bytes_;
  int pieces_;  // of a row
  int waves_;
  language::Value* filler_;  // the wave's number among those
  const std::optional<KeyPages>& pages_;
  const std::optional<TilePages>& tile_pages_;
  bool few_offsets_ = false;
  std::vector<language::Value*> lane_offsets_;  // of each DMA instruction of this wave, [line group][piece]
  // Where the lane's bytes begin in a row's last piece, if it is no whole one.
  language::Value* column_ = nullptr;
  language::Value* lds_line_;              // this wave's first line, bytes
  language::Value* rows_start_ = nullptr;  // per lane: where its fragments start
  language::Value* transposed_start_ = nullptr;
  // For neighbouring rows: the same for the blocks of dims in a piece.
  std::array<language::Value*, 4> neighbour_rows_{};
  language::Value* second_transposed_start_ = nullptr;
  // For a permuted image, in the buffer that was entered: for each block of dims in a piece; and for each half of a
  // piece, block of rows mod 2 and half of the block. For bytes the latter are for each quarter and block mod 2.
  std::array<language::Value*, 8> entered_rows_{};
  std::array<language::Value*, 8> entered_transposed_{};
};

}  // namespace wavejit::attention
