// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One tensor's tiles in lines (lds_layout.h), fetched by 16-byte LDS DMA, and read by rows or by transpose reads.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <vector>

#include "templates/attention/emit/key_pages.h"
#include "templates/attention/emit/tile_pages.h"
#include "templates/attention/emit/tiles.h"

namespace wavejit::attention {

// Whether a line holds neighbouring rows, and how the image is then read.
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
    // One image is read both by rows and transposed: its units are permuted, and it needs no padding
    // (kernel/lds_layout.h). The reads then begin at places that enter_rows and enter_transposed compute.
    bool permuted = false;
    // Memory and LDS hold 8 bits an element, and the reader widens them: keys_of_bytes and transposed_keys read such
    // images.
    bool bytes = false;
    // Rows take whole pieces in LDS, even if the last piece is partly empty: rows of 16 bits, and images that threads
    // write (streams_narrow.h).
    bool whole_pieces = false;
    // The caller waits for the transfers itself (codegen/language/synchronize.h), so the backend must add no wait
    // before reads. The backend would follow every path through a loop, also paths that are never taken.
    bool waited_for = false;
    // Each wave fills whole images of its own; `fetch` and `transfers_of_line` are told where. With `waves` = 1.
    bool own_images = false;
    // A line has neighbouring rows of one granule, for layouts with wave_granules (kernel/lds_layout.h).
    NeighbourRows neighbours = NeighbourRows::none;
  };
  // `waves` waves fetch a tile together. `pages`: for keys whose granules or single keys are looked up. All arguments
  // must stay.
  LineStream(language::Kernel& kernel, language::Lds& lds, const language::MatrixUnit& matrix, const Slice& slice,
             const Place& place, int dims, int waves, const std::optional<KeyPages>& pages,
             const std::optional<TilePages>& tile_pages);

  // Computes where a lane's reads begin; call it once before the first read. A wave that reads other rows than the
  // tile's first begins at block `first_row_block` (uniform).
  void begin_rows(language::Value* lane_group, language::Value* first_row_block = nullptr);
  void begin_transposed(language::Value* lane_group);
  // As begin_rows, for transpose reads of bytes.
  void begin_transposed_bytes(language::Value* lane_group);
  // As begin_rows, for a wave whose dims begin with piece `first_piece` (uniform) of a row: dim blocks count from
  // there.
  void begin_transposed(language::Value* lane_group, language::Value* first_piece);
  // As begin_rows, for a permuted image of bytes, from the first dim on.
  void begin_narrow_transposed(language::Value* lane_group, language::Value* first_dim);

  // Call these before the reads of a buffer of a permuted image. They compute the addresses of the reads, which live
  // until the last read.
  void enter_rows(language::Value* image);
  void enter_transposed(language::Value* image);

  // Fetches a tile into a buffer, in transfers() DMA instructions of this wave. For keys in pages of whole tiles,
  // `place` is the page that was looked up. Here and below `unseen` is for values (unseen_keys.h): zeros come in place
  // of rows that are not seen.
  void fetch(int buffer, language::Value* tile, const TilePages::Place& place = {}, language::Value* unseen = nullptr);
  // Fetches a tile into the image that begins `image` bytes (uniform) after the first buffer.
  void fetch(language::Value* image, language::Value* tile, const TilePages::Place& place = {},
             language::Value* unseen = nullptr);
  int transfers() const { return lines_of_piece() / waves_ * pieces_; }
  // For kernels that are short of registers: a lane keeps one offset a line, and computes those of the pieces anew for
  // each tile.
  void keep_few_offsets() { few_offsets_ = true; }
  // The transfers of one of the wave's lines (0 … lines() − 1), one by one, for callers that put other work between
  // them. `entries`: for keys that are looked up in granules or one by one. Where `exists` (uniform) is false they read
  // nothing, and zeros arrive.
  using Transfer = std::function<void()>;
  std::vector<Transfer> transfers_of_line(language::Value* image, language::Value* tile, const TilePages::Place& place,
                                          language::Value* entries, std::size_t line, language::Value* exists,
                                          language::Value* unseen = nullptr);
  // The transfers of a line whose rows lie anywhere in the slice: `begins(row)` is where a lane's row of the image
  // begins.
  std::vector<Transfer> transfers_of_rows(language::Value* image, std::size_t line,
                                          const std::function<language::Value*(language::Value* row)>& begins);
  std::size_t lines() const { return static_cast<std::size_t>(lines_of_piece() / waves_); }
  // Fetches keys in pages: each lane takes its granule's row, or each line takes the places of its keys.
  void gather(int buffer, language::Value* tile, language::Value* entries, language::Value* unseen = nullptr);
  std::vector<KeyPages::KeyPlace> places_of_lines(language::Value* tile, language::Value* entries,
                                                  language::Value* unseen = nullptr) const;
  void gather(int buffer, const std::vector<KeyPages::KeyPlace>& places);

  // The reads of a permuted image of bytes: the same elements as `rows` and `transposed`, 8 bytes a lane (<2 x i32>),
  // not widened.
  language::Value* narrow_rows(int buffer, int row_block, int dim_block);
  language::Value* narrow_transposed(int buffer, int dim_block, int row_block);

  language::OperandA rows(int buffer, int row_block, int dim_block) override;
  // Where a lane's reads by rows begin in an image that lies `image` bytes after the first buffer; and these reads.
  language::Value* rows_start(language::Value* image) const;
  language::OperandA rows(language::Value* start, int row_block, int dim_block);
  language::OperandA transposed(int buffer, int dim_block, int row_block) override;
  language::Value* transposed_bytes(int buffer, int dim_block, int row_block) override;
  language::Value* transposed_bytes(language::Value* start, int dim_block, int row_block);
  // Transpose reads from a buffer that is known at run time only: where a lane's reads begin in it, and the reads. The
  // reads wait for every transfer that is in flight.
  language::Value* transposed_start(language::Value* buffer);
  // As transposed_start, for an image.
  language::Value* transposed_start_in(language::Value* image) const;
  language::OperandA transposed(language::Value* start, int dim_block, int row_block);

 private:
  static constexpr int dma_bytes = 16;  // per lane
  static constexpr int slot_bytes = LdsPlan::piece_bytes;

  // The row that lane `slot` fetches on line `line` of this wave, counted in the tile or in its granule.
  language::Value* row_of(language::Value* slot, int line) const;
  language::Value* slot() const;
  // The bytes of a piece. A row of bytes can be half a piece, or have an odd number of halves: then sixteen half pieces
  // lie on each of four lines. With whole pieces the last one may be partly empty.
  int piece_bytes() const {
    const bool whole = place_.whole_pieces ||
                       (place_.permuted ? row_bytes_ >= LdsPlan::piece_bytes : row_bytes_ % LdsPlan::piece_bytes == 0);
    return whole ? LdsPlan::piece_bytes : LdsPlan::piece_bytes / 2;
  }
  int lines_of_piece() const { return LdsPlan::lines_per_piece * piece_bytes() / LdsPlan::piece_bytes; }
  bool has_neighbours() const { return place_.neighbours != NeighbourRows::none; }
  // The key of slot `slot` of line `line`: unit u of the slot lies at unit u xor key.
  language::Value* neighbour_key(language::Value* line, language::Value* slot) const;
  // The distance of eight rows, in a transposed read.
  int eight_rows_bytes() const { return has_neighbours() ? place_.line_bytes : slot_bytes; }
  bool has_halves() const { return piece_bytes() < LdsPlan::piece_bytes; }
  int row_block_bytes() const;  // keys 32 further
  // As row_of, for a granule, if lines have neighbouring rows.
  language::Value* row_of_granule(language::Value* slot) const;
  void begin_neighbour_rows(language::Value* row, language::Value* lane_group);
  // What line `line` changes in the slot of a row, and slot `slot` in the units of a row.
  language::Value* slot_bit_of(language::Value* line) const;
  language::Value* unit_key_of(language::Value* line, language::Value* slot) const;
  language::Value* unit_of_lane() const;
  // The alias scope of reads from a buffer that is known at run time only.
  int read_region() const { return place_.waited_for ? at(0).region : language::Lds::any_region; }
  int fill_region(int buffer) const { return place_.waited_for ? language::Lds::any_region : at(buffer).region; }
  void fill(language::Value* lds_line, int buffer, language::Value* tile, const TilePages::Place& place,
            language::Value* unseen);
  const Place::Buffer& at(int buffer) const { return place_.buffers[static_cast<std::size_t>(buffer)]; }
  int line_offset(int piece, int line) const;
  // Per lane: the place that it fetches in a piece of the row that begins at `row`; far outside if the row ends before
  // the piece. Keys that are looked up have an address in place of a descriptor, and `exists` says whether they are
  // read.
  language::Value* in_piece(language::Value* row, int piece) const;
  language::Value* is_in_row(language::Value* exists, int piece) const;
  language::Value* has_bytes() const;
  // The pieces' offsets of one of the wave's lines.
  std::vector<language::Value*> offsets_of_line(std::size_t line) const;
  // Moves all offsets of a line far outside if its row is not seen. The first offset tells which row it is.
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
  language::Value* filler_;  // the wave's number among the waves that fetch
  const std::optional<KeyPages>& pages_;
  const std::optional<TilePages>& tile_pages_;
  bool few_offsets_ = false;
  std::vector<language::Value*> lane_offsets_;  // of each DMA instruction of this wave, [line group][piece]
  // Where the lane's bytes begin in the last piece of a row, if the piece is not whole.
  language::Value* column_ = nullptr;
  language::Value* lds_line_;              // this wave's first line, bytes
  language::Value* rows_start_ = nullptr;  // per lane: where its fragments start
  language::Value* transposed_start_ = nullptr;
  // For neighbouring rows: where reads begin, for each block of dims in a piece.
  std::array<language::Value*, 4> neighbour_rows_{};
  language::Value* second_transposed_start_ = nullptr;
  // For the entered buffer of a permuted image: where reads begin, by rows for each block of dims in a piece;
  // transposed for each half of a piece, block of rows mod 2 and half of the block. For bytes the latter is for each
  // quarter of a piece and block mod 2.
  std::array<language::Value*, 8> entered_rows_{};
  std::array<language::Value*, 8> entered_transposed_{};
};

}  // namespace wavejit::attention
