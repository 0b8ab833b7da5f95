// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_backward/emit/wide_tile.h"

#include <memory>
#include <optional>

#include "codegen/language/lane_place.h"

namespace wavejit::attention_backward {
namespace {

constexpr int most_dims_of_piece = 128;
constexpr int dims_of_narrow_piece = most_dims_of_piece / 2;

int dims_of_piece(int dims) {
  if (dims <= most_dims_of_piece) return dims;
  return dims % most_dims_of_piece == 0 ? most_dims_of_piece : dims_of_narrow_piece;
}

// An offset of an LDS instruction has 16 bits. It names rows of an image, but not a lane's place among the last ones,
// which are this much.
constexpr int offset_bytes = 0x10000;
constexpr int bytes_of_last_rows = 1024;

}  // namespace

WideTilePlan plan_wide_tile(const targets::Target& target, const RowTileShape& shape, int first_byte,
                            int first_region) {
  RowTileShape piece = shape;
  piece.dims = dims_of_piece(shape.dims);
  WideTilePlan plan;
  for (int dim = 0; dim < shape.dims; dim += piece.dims) {
    RowTilePlan one = plan_tile(target, piece, first_byte, first_region);
    one.first_byte += static_cast<int>(plan.pieces.size()) * one.total_bytes();
    one.first_dim = dim;
    plan.pieces.push_back(one);
  }
  if (first_byte + plan.total_bytes() > offset_bytes + bytes_of_last_rows)
    for (RowTilePlan& one : plan.pieces) one.address_bytes = first_byte;
  return plan;
}

WideTile::WideTile(language::Kernel& kernel, const language::Lds& lds, const language::MatrixUnit& matrix,
                   const WideTilePlan& plan, language::Value* row_stride)
    : fragments_of_piece_(plan.pieces.front().shape.dims / language::wave_shape(kernel).fragment_k()),
      columns_of_piece_(plan.pieces.front().shape.dims / language::wave_shape(kernel).rows) {
  pieces_.reserve(plan.pieces.size());
  for (const RowTilePlan& one : plan.pieces) pieces_.emplace_back(kernel, lds, matrix, one, row_stride);
}

// The rows' descriptor is made once, in the first piece's first.
void WideTile::add_fetch(language::Strand& strand, int buffer, const std::function<language::Buffer()>& from,
                         language::Value* first_row, language::Values& loaded) {
  const auto made = std::make_shared<std::optional<language::Buffer>>();
  for (RowTile& piece : pieces_)
    piece.add_fetch(
        strand, buffer,
        [=] {
          if (!made->has_value()) *made = from();
          return **made;
        },
        first_row, loaded);
}

void WideTile::add_rows(language::Strand& strand, const language::Values& loaded, std::size_t first) {
  for (RowTile& piece : pieces_) {
    piece.add_rows(strand, loaded, first);
    first += piece.in_flight();
  }
}

void WideTile::add_columns(language::Strand& strand, const language::Values& loaded, std::size_t first, int image) {
  for (RowTile& piece : pieces_) {
    piece.add_columns(strand, loaded, first, image);
    first += piece.in_flight();
  }
}

language::OperandA WideTile::rows(int buffer, int row_block, int dim_block) {
  return pieces_[static_cast<std::size_t>(dim_block / fragments_of_piece_)].rows(buffer, row_block,
                                                                                 dim_block % fragments_of_piece_);
}

language::OperandA WideTile::transposed(int buffer, int dim_block, int row_block) {
  return pieces_[static_cast<std::size_t>(dim_block / columns_of_piece_)].transposed(
      buffer, dim_block % columns_of_piece_, row_block);
}

}  // namespace wavejit::attention_backward
