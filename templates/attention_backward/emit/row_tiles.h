// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A tile of rows of one matrix in LDS, which is read by rows and by columns. 256 threads fetch it.
//
// A unit is 16 bytes. No read and no write meets another in a bank:
//
//   targets with transpose reads   one image, filled by 16-byte LDS DMA, two buffers or more. A line of 16 units takes
//                                  all 64 banks: it is one row of 128 dims, or two of 64. Unit w of line l lies at
//                                  w xor 4 (l mod 4). After every four lines, which is what one DMA instruction
//                                  fills, one unit is empty. So the same unit of sixteen lines lies in sixteen places
//                                  (a read by rows), and so do the four units of each of four rows (a transpose read)
//   others                         loaded into registers; rows are row-major. Unit u of row n lies at unit
//                                  u xor key(n), where key(n) has bits 0, 1 and 2 of n as bits 1, 2 and 0, so that
//                                  the same unit of eight neighbouring rows lies in eight places. A second image has
//                                  the columns, [dim][rows], one buffer. Unit 2s + h of a dim holds lane group h's
//                                  part of a fragment: rows 16s + 4h … + 3 and 16s + 8 + 4h … + 3, or, if
//                                  accumulators have blocks of eight rows, 16s + 8h … + 7. row_tiles.cpp computes its
//                                  place
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "codegen/language/buffer.h"
#include "codegen/language/lds.h"
#include "codegen/language/matrix.h"
#include "codegen/language/strand.h"
#include "templates/attention/emit/tiles.h"
#include "templates/attention_backward/kernel/spec.h"

namespace wavejit::attention_backward {

struct RowTileShape {
  int rows = 0;
  int dims = 0;
  int element_bytes = 0;
  bool by_columns = false;  // read by columns, too
  bool by_rows = true;
  int filled_buffers = 2;    // with LDS DMA
  int waves_of_filling = 1;  // of this many waves, one fetches the tile
  int column_images = 1;     // without LDS DMA: how many images of columns there are
};

// The places of a tile's images in LDS.
struct RowTilePlan {
  RowTileShape shape;
  bool transposes = false;  // the reads transpose
  int buffers = 1;
  int image_bytes = 0;
  int first_byte = 0;  // of the first buffer
  int first_region = 0;
  int first_dim = 0;      // of a row in memory
  int address_bytes = 0;  // the part of first_byte that is in the addresses of reads, not in their offsets

  constexpr bool has_rows() const { return transposes || shape.by_rows; }
  constexpr bool has_columns() const { return !transposes && shape.by_columns; }
  constexpr int columns_byte() const { return has_rows() ? image_bytes : 0; }  // of a buffer
  constexpr int buffer_bytes() const {
    return columns_byte() + (has_columns() ? shape.column_images * image_bytes : 0);
  }
  constexpr int total_bytes() const { return buffers * buffer_bytes(); }
  constexpr int regions() const { return buffers; }
};
RowTilePlan plan_tile(const targets::Target& target, const RowTileShape& shape, int first_byte, int first_region);

class RowTile final : public attention::TileStream {
 public:
  RowTile(language::Kernel& kernel, const language::Lds& lds, const language::MatrixUnit& matrix,
          const RowTilePlan& plan, language::Value* row_stride);

  // Begins to fetch the rows from `first_row` on, piece by piece: into `buffer`, or into registers, which are added to
  // `loaded`. `from` is called in the first piece.
  void add_fetch(language::Strand& strand, int buffer, const std::function<language::Buffer()>& from,
                 language::Value* first_row, language::Values& loaded);
  // Writes registers to the images, piece by piece. `loaded` from `first` on is what add_fetch added. Adds nothing if
  // DMA filled LDS.
  void add_rows(language::Strand& strand, const language::Values& loaded, std::size_t first);
  void add_columns(language::Strand& strand, const language::Values& loaded, std::size_t first, int image = 0);
  // Chooses which of several images of columns is read from here on.
  void read_columns_from(int image) { column_image_ = image; }
  // How many values add_fetch adds to `loaded`.
  std::size_t in_flight() const { return plan_.transposes ? 0 : rows_of_thread; }

  language::OperandA rows(int buffer, int row_block, int dim_block) override;
  language::OperandA transposed(int buffer, int dim_block, int row_block) override;

 private:
  static constexpr int rows_of_thread = 4;
  static constexpr int dims_of_unit = 8;

  int row_bytes() const { return plan_.shape.dims * plan_.shape.element_bytes; }
  int unit_elements() const;
  int units_of_column() const { return plan_.shape.rows / unit_elements(); }
  int column_bytes() const { return plan_.shape.rows * plan_.shape.element_bytes; }
  int at(int buffer) const { return plan_.first_byte + (buffer * plan_.buffer_bytes()); }
  // The offset of reads from a buffer.
  int from(int buffer) const { return at(buffer) - plan_.address_bytes; }
  language::Value* read_from(language::Value* place) const;
  int units_of_row() const { return plan_.shape.dims / unit_elements(); }
  int fills_of_wave() const;
  int rows_of_fill() const;
  int dims_of_thread() const;
  int filling_threads() const;
  int filling_waves() const { return waves_of(kernel_.target()) / plan_.shape.waves_of_filling; }
  // The number of the wave, or of this thread, among those that fetch the tile.
  language::Value* filling_wave() const;
  language::Value* filling_thread() const;
  // A lane group has a block of eight rows as a whole, or blocks of four rows in pairs.
  bool has_whole_blocks() const { return kernel_.target().row_block == dims_of_unit; }
  // Where unit 0 of the first dim of a block of columns lies.
  int unit_of_block(int dim) const;
  // Lanes that write columns at the same time are eight dims apart: then the key for 32 rows needs another bit of the
  // dim.
  bool writes_eight_dims() const { return dims_of_thread() == dims_of_unit; }
  void prepare_fills();
  void prepare_registers();
  void prepare_reads_of_image();
  void prepare_reads_of_images();

  language::Kernel& kernel_;
  const language::Lds& lds_;
  const language::MatrixUnit& matrix_;
  RowTilePlan plan_;
  language::Value* row_stride_;
  std::vector<language::Value*> offsets_;     // in memory: of this wave's first fetch, or of each row of this thread
  std::vector<language::Value*> row_places_;  // where this thread writes its rows
  language::Value* column_place_ = nullptr;   // where it writes the first of its columns
  int column_image_ = 0;
  language::Value* fill_place_ = nullptr;    // where this wave's fetches begin in LDS
  std::vector<language::Value*> read_rows_;  // per lane, by the unit bits that an instruction's offset cannot express
  std::vector<language::Value*> read_columns_;  // for columns, in the same way
};

}  // namespace wavejit::attention_backward
