// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a wave reads of tiles in lines, once its starts are made (stream_lines.cpp).
#include "codegen/language/lane_place.h"
#include "templates/attention/emit/stream_lines.h"

namespace wavejit::attention {
using language::Value;

language::OperandA LineStream::rows(int buffer, int row_block, int dim_block) {
  const targets::WaveShape wave = language::wave_shape(kernel_);
  const int blocks_per_piece = piece_bytes() / wave.fragment_bytes();
  const int in_image = line_offset(dim_block / blocks_per_piece, 0) + (row_block * row_block_bytes());
  const int in_piece = dim_block % blocks_per_piece;
  if (place_.permuted)
    return matrix_.operand_a(
        lds_.read(at(buffer).region, dma_bytes, entered_rows_[static_cast<std::size_t>(in_piece)], in_image),
        language::KOrder::contiguous);
  if (has_neighbours())
    return matrix_.operand_a(
        lds_.read(at(buffer).region, dma_bytes, neighbour_rows_[static_cast<std::size_t>(in_piece)],
                  at(buffer).offset + in_image),
        language::KOrder::contiguous);
  const int offset = at(buffer).offset + in_image + (in_piece * wave.fragment_bytes());
  return matrix_.operand_a(lds_.read(at(buffer).region, dma_bytes, rows_start_, offset), language::KOrder::contiguous);
}

Value* LineStream::narrow_rows(int buffer, int row_block, int dim_block) {
  const int blocks_per_piece = piece_bytes() / dma_bytes;
  const int in_image = line_offset(dim_block / blocks_per_piece, 0) + (row_block * row_block_bytes());
  return lds_.read(at(buffer).region, dma_bytes / 2,
                   entered_rows_[static_cast<std::size_t>(dim_block % blocks_per_piece)], in_image);
}

Value* LineStream::narrow_transposed(int buffer, int dim_block, int row_block) {
  constexpr int blocks_per_piece = 4;
  const int offset = line_offset(dim_block / blocks_per_piece, 0) + (2 * row_block * slot_bytes);
  const auto key = static_cast<std::size_t>((dim_block % blocks_per_piece * 2) + (row_block % 2));
  return lds_.read_transposed_bytes(at(buffer).region, entered_transposed_[key], offset);
}

Value* LineStream::rows_start(Value* image) const { return kernel_.ir().CreateAdd(rows_start_, image); }

language::OperandA LineStream::rows(Value* start, int row_block, int dim_block) {
  const targets::WaveShape wave = language::wave_shape(kernel_);
  const int blocks_per_piece = piece_bytes() / wave.fragment_bytes();
  const int offset = at(0).offset + line_offset(dim_block / blocks_per_piece, 0) + (row_block * row_block_bytes()) +
                     (dim_block % blocks_per_piece * wave.fragment_bytes());
  return matrix_.operand_a(lds_.read(read_region(), dma_bytes, start, offset), language::KOrder::contiguous);
}

language::OperandA LineStream::transposed(int buffer, int dim_block, int row_block) {
  if (place_.permuted) {
    constexpr int blocks_per_piece = 2;
    const int offset = line_offset(dim_block / blocks_per_piece, 0) + (2 * row_block * slot_bytes);
    const auto key = static_cast<std::size_t>((dim_block % blocks_per_piece * 4) + (row_block % 2 * 2));
    Value* first = lds_.read_transposed(at(buffer).region, entered_transposed_[key], offset);
    Value* second = lds_.read_transposed(at(buffer).region, entered_transposed_[key + 1], offset);
    return matrix_.operand_a(kernel_.ir().CreateShuffleVector(first, second, {0, 1, 2, 3}),
                             language::KOrder::accumulator_rows);
  }
  Value* start = has_neighbours() && dim_block % 2 == 1 ? second_transposed_start_ : transposed_start_;
  return transposed_at(at(buffer).region, start, at(buffer).offset, dim_block, row_block);
}

Value* LineStream::transposed_bytes(int buffer, int dim_block, int row_block) {
  return transposed_bytes_at(at(buffer).region, transposed_start_, at(buffer).offset, dim_block, row_block);
}

Value* LineStream::transposed_bytes(Value* start, int dim_block, int row_block) {
  return transposed_bytes_at(read_region(), start, at(0).offset, dim_block, row_block);
}

// 32 rows are four slots, two a read.
Value* LineStream::transposed_bytes_at(int region, Value* start, int buffer_offset, int dim_block, int row_block) {
  const int block_bytes = language::wave_shape(kernel_).rows;
  const int blocks_per_piece = piece_bytes() / block_bytes;
  const int offset = buffer_offset + line_offset(dim_block / blocks_per_piece, 0) + (row_block * row_block_bytes()) +
                     (dim_block % blocks_per_piece * block_bytes);
  Value* first = lds_.read_transposed_bytes(region, start, offset);
  Value* second = lds_.read_transposed_bytes(region, start, offset + (2 * slot_bytes));
  return kernel_.ir().CreateShuffleVector(first, second, {0, 1, 2, 3});
}

Value* LineStream::transposed_start(Value* buffer) {
  llvm::IRBuilder<>& ir = kernel_.ir();
  return ir.CreateAdd(transposed_start_, ir.CreateMul(buffer, kernel_.constant(at(1).offset - at(0).offset)));
}

Value* LineStream::transposed_start_in(Value* image) const { return kernel_.ir().CreateAdd(transposed_start_, image); }

language::OperandA LineStream::transposed(Value* start, int dim_block, int row_block) {
  if (has_neighbours() && dim_block % 2 == 1)
    start = kernel_.ir().CreateXor(start, kernel_.constant(LdsPlan::piece_bytes / 2));
  return transposed_at(read_region(), start, at(0).offset, dim_block, row_block);
}

language::OperandA LineStream::transposed_at(int region, Value* start, int buffer_offset, int dim_block,
                                             int row_block) {
  const int block_bytes = language::wave_shape(kernel_).rows * targets::bytes_of(matrix_.element());
  const int blocks_per_piece = LdsPlan::piece_bytes / block_bytes;
  // 16 rows are two slots, or lines of neighbours: rows 0 … 7 of the block on the first, 8 … 15 on the second. Of
  // neighbours `start` is one for the block of dims.
  const int in_piece = has_neighbours() ? 0 : dim_block % blocks_per_piece * block_bytes;
  const int offset =
      buffer_offset + line_offset(dim_block / blocks_per_piece, 0) + (2 * row_block * eight_rows_bytes()) + in_piece;
  Value* first = lds_.read_transposed(region, start, offset);
  Value* second = lds_.read_transposed(region, start, offset + eight_rows_bytes());
  return matrix_.operand_a(kernel_.ir().CreateShuffleVector(first, second, {0, 1, 2, 3}),
                           language::KOrder::accumulator_rows);
}

}  // namespace wavejit::attention
