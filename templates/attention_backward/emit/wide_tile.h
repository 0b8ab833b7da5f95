// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A tile of rows of any head dim. An image of row_tiles.h has 64 dims or 128; more of them are pieces side by side in
// LDS, all alike, so that lanes read them at the same addresses: 192 dims are three pieces of 64, 256 two of 128.
#pragma once

#include <functional>
#include <vector>

#include "templates/attention_backward/emit/row_tiles.h"

namespace wavejit::attention_backward {

struct WideTilePlan {
  std::vector<RowTilePlan> pieces;

  int buffers() const { return pieces.front().buffers; }
  int regions() const { return pieces.front().regions(); }  // a buffer of all pieces is one
  int total_bytes() const { return static_cast<int>(pieces.size()) * pieces.front().total_bytes(); }
};
WideTilePlan plan_wide_tile(const targets::Target& target, const RowTileShape& shape, int first_byte, int first_region);

// As RowTile.
class WideTile final : public attention::TileStream {
 public:
  WideTile(language::Kernel& kernel, const language::Lds& lds, const language::MatrixUnit& matrix,
           const WideTilePlan& plan, language::Value* row_stride);

  void add_fetch(language::Strand& strand, int buffer, const std::function<language::Buffer()>& from,
                 language::Value* first_row, language::Values& loaded);
  void add_rows(language::Strand& strand, const language::Values& loaded, std::size_t first);
  void add_columns(language::Strand& strand, const language::Values& loaded, std::size_t first, int image = 0);
  void read_columns_from(int image) {
    for (RowTile& piece : pieces_) piece.read_columns_from(image);
  }
  std::size_t in_flight() const { return pieces_.size() * pieces_.front().in_flight(); }

  language::OperandA rows(int buffer, int row_block, int dim_block) override;
  language::OperandA transposed(int buffer, int dim_block, int row_block) override;

 private:
  int fragments_of_piece_;  // of rows, and of columns
  int columns_of_piece_;
  std::vector<RowTile> pieces_;
};

}  // namespace wavejit::attention_backward
