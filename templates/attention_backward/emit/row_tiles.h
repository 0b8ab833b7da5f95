// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A tile of rows of one matrix in LDS, to be read by rows and by columns. 256 threads bring it.
//
// A unit is 16 bytes. No read and no write meets another in a bank:
//
//   targets with transpose reads   one image, filled by 16-byte LDS DMA, two buffers or more. All 64 banks are a line
//   of 16
//                                  units: one row of 128 dims, or two of 64. Unit w of line l stands at w xor
//                                  4 (l mod 4), and behind every fourth line, which is what an instruction of the DMA
//                                  fills, a unit stands empty. So sixteen lines have the same unit in sixteen places
//                                  (a read by rows), and the four rows of a transpose read their four units
//   others                         loaded into registers; rows are row-major. Unit u of row n stands at unit
//                                  u xor key(n), where key(n) has bits 0, 1 and 2 of n as bits 1, 2 and 0: eight
//                                  neighbouring rows have the same unit in eight places. A second image has the
//                                  columns, [dim][rows], one buffer. Unit 2s + h of a dim holds what lane group h has
//                                  of a fragment: rows 16s + 4h … + 3 and 16s + 8 + 4h … + 3, or, where accumulators
//                                  have blocks of eight rows, 16s + 8h … + 7; at a place that row_tiles.cpp draws
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
  bool by_columns = false;  // asked for, too
  bool by_rows = true;
  int filled_buffers = 2;    // with LDS DMA
  int waves_of_filling = 1;  // of this many waves, one fetches the tile
  int column_images = 1;     // without LDS DMA
};

// Where the images of a tile stand.
struct RowTilePlan {
  RowTileShape shape;
  bool transposes = false;  // the reads do
  int buffers = 1;
  int image_bytes = 0;
  int first_byte = 0;  // of the first buffer
  int first_region = 0;
  int first_dim = 0;      // of a row in memory
  int address_bytes = 0;  // of first_byte, what stands in addresses of reads instead of their offsets

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

  // Begins the way of the rows from `first_row` on, piece by piece: into `buffer`, or into registers, which are added
  // to `loaded`. `from` is asked for in the first piece.
  void add_fetch(language::Strand& strand, int buffer, const std::function<language::Buffer()>& from,
                 language::Value* first_row, language::Values& loaded);
  // From registers into the images, piece by piece; `loaded` from `first` on is what add_fetch added. Nothing where LDS
  // was filled.
  void add_rows(language::Strand& strand, const language::Values& loaded, std::size_t first);
  void add_columns(language::Strand& strand, const language::Values& loaded, std::size_t first, int image = 0);
  // Chooses which of several images of columns is read from here on.
  void read_columns_from(int image) { column_image_ = image; }
  // How many values they are.
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
  // The offset of reads.
  int from(int buffer) const { return at(buffer) - plan_.address_bytes; }
  language::Value* read_from(language::Value* place) const;
  int units_of_row() const { return plan_.shape.dims / unit_elements(); }
  int fills_of_wave() const;
  int rows_of_fill() const;
  int dims_of_thread() const;
  int filling_threads() const;
  int filling_waves() const { return waves_of(kernel_.target()) / plan_.shape.waves_of_filling; }
  // The number of the wave, or of this thread, among those that fill.
  language::Value* filling_wave() const;
  language::Value* filling_thread() const;
  // A block of eight rows is a lane group's as it stands; blocks of four are two by two.
  bool has_whole_blocks() const { return kernel_.target().row_block == dims_of_unit; }
  // Where the first dim of a block of columns has a unit of 0.
  int unit_of_block(int dim) const;
  // Lanes that write columns at once are eight dims apart: the key of 32 rows needs another bit of them.
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
  std::vector<language::Value*> offsets_;  // in memory: of the first fill of this wave, or of each row of this thread
  std::vector<language::Value*> row_places_;  // where this thread writes its rows
  language::Value* column_place_ = nullptr;   // and the first of its columns
  int column_image_ = 0;
  language::Value* fill_place_ = nullptr;    // where this wave's fills begin
  std::vector<language::Value*> read_rows_;  // per lane, by the unit bits that an instruction's offset cannot express
  std::vector<language::Value*> read_columns_;  // the same
};

}  // namespace wavejit::attention_backward
