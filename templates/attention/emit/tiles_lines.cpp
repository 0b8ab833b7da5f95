// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention/emit/tiles_lines.h"

#include "codegen/language/control.h"
#include "codegen/language/synchronize.h"

namespace wavejit::attention {
namespace {

using language::Value;
using language::Values;

constexpr int dma_bytes = 16;                                            // per lane
constexpr int dma_elements = dma_bytes / LdsPlan::element_bytes;         // per lane
constexpr int lanes_per_piece = LdsPlan::piece_elements / dma_elements;  // lanes that fetch one 128-byte row piece
constexpr int merged_lane_bytes = 16;
constexpr int slot_bytes = LdsPlan::piece_elements * LdsPlan::element_bytes;

}  // namespace

LineTiles::LineTiles(language::Kernel& kernel, const TileShape& shape, const LdsPlan& plan, const KeyTensors& tensors,
                     Value* lane_group, const language::MatrixUnit& matrix)
    : kernel_(kernel),
      plan_(plan),
      matrix_(matrix),
      lds_(kernel, plan.total_bytes(), 2 * plan.buffers + (plan.merged_slots != 0 ? 1 : 0)),
      waves_(shape.waves),
      pages_(pages_of(kernel, shape.layout, tensors)),
      tile_pages_(tile_pages_of(kernel, shape.layout, tensors)),
      k_(make_stream(tensors.k, plan.k_line_bytes, shape.dims_k)),
      v_(make_stream(tensors.v, plan.v_line_bytes, shape.dims_v)) {
  llvm::IRBuilder<>& ir = kernel.ir();
  const auto constant = [&](int value) { return kernel.constant(value); };
  Value* lane = kernel.lane();

  // K: key = lane % 32 stands on line key % 8 at slot key / 8; a lane group starts 8 elements in.
  Value* key = ir.CreateAnd(lane, constant(31));
  k_read_ = ir.CreateMul(ir.CreateAnd(key, constant(7)), constant(plan.k_line_bytes));
  k_read_ = ir.CreateAdd(k_read_, ir.CreateMul(ir.CreateLShr(key, constant(3)), constant(slot_bytes)));
  k_read_ = ir.CreateAdd(k_read_, ir.CreateMul(lane_group, constant(dma_bytes)));

  // V: a transpose read takes, in each group of 16 lanes, four rows of 16 elements. Lane group h reads keys 4h … 4h + 3
  // (lines 4h … 4h + 3); lanes 4r … 4r + 3 of 16 supply row r; the second 16 lanes take the next 16 dims.
  Value* in_sixteen = ir.CreateAnd(lane, constant(15));
  v_read_ = ir.CreateMul(lane_group, constant(4 * plan.v_line_bytes));
  v_read_ = ir.CreateAdd(v_read_, ir.CreateMul(ir.CreateLShr(in_sixteen, constant(2)), constant(plan.v_line_bytes)));
  Value* second_sixteen = ir.CreateAnd(ir.CreateLShr(lane, constant(4)), constant(1));
  v_read_ = ir.CreateAdd(v_read_, ir.CreateMul(second_sixteen, constant(16 * LdsPlan::element_bytes)));
  v_read_ = ir.CreateAdd(v_read_, ir.CreateMul(ir.CreateAnd(lane, constant(3)), constant(8)));
}

// Wave w fills lines w, w + waves, …: lane l fetches 16 bytes of key 8 · (l / 8) + line, so that the line is 64 lanes ·
// 16 bytes as the DMA writes them.
LineTiles::Stream LineTiles::make_stream(const Slice& slice, int line_bytes, int head_dim) {
  llvm::IRBuilder<>& ir = kernel_.ir();
  const auto constant = [&](int value) { return kernel_.constant(value); };
  Stream stream{.slice = slice,
                .line_bytes = line_bytes,
                .row_bytes = head_dim * LdsPlan::element_bytes,
                .pieces = head_dim / LdsPlan::piece_elements,
                .lane_offsets = {},
                .lds_line = ir.CreateMul(kernel_.wave(), constant(line_bytes))};
  Value* lane = kernel_.lane();
  Value* slot = ir.CreateLShr(lane, constant(3));
  // 16 lanes fetch rows of one granule.
  if (pages_) slot = ir.CreateAnd(slot, constant(1));
  Value* column = ir.CreateMul(ir.CreateAnd(lane, constant(lanes_per_piece - 1)), constant(dma_bytes));
  const bool by_key = pages_ && pages_->looks_up_each_key();
  for (int line = 0; line < LdsPlan::lines_per_piece; line += waves_) {
    Value* row = by_key ? column : ir.CreateAdd(ir.CreateMul(row_of(slot, line), slice.row_stride), column);
    // The piece is added here and not as the instruction's offset, which would move the LDS address along.
    for (int piece = 0; piece < stream.pieces; ++piece)
      stream.lane_offsets.push_back(piece == 0 ? row : ir.CreateAdd(row, constant(piece * slot_bytes)));
  }
  return stream;
}

Value* LineTiles::row_of(Value* slot, int line) const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  return ir.CreateAdd(ir.CreateMul(slot, kernel_.constant(LdsPlan::lines_per_piece)),
                      ir.CreateAdd(kernel_.wave(), kernel_.constant(line)));
}

// A line has keys of all four granules, whose pages may be anywhere: every lane has an address of its own.
void LineTiles::gather(const Stream& stream, int region, int region_offset, Value* tile, Value* entries) {
  llvm::IRBuilder<>& ir = kernel_.ir();
  Value* rows = pages_->lane_rows(stream.slice, tile, entries);
  Value* slot = ir.CreateLShr(kernel_.lane(), kernel_.constant(3));
  std::size_t instruction = 0;
  for (int line = 0; line < LdsPlan::lines_per_piece; line += waves_) {
    Value* is_live = pages_->is_live(tile, row_of(slot, line));
    for (int piece = 0; piece < stream.pieces; ++piece) {
      const int line_offset = (piece * LdsPlan::lines_per_piece + line) * stream.line_bytes;
      Value* address = ir.CreateAdd(rows, ir.CreateZExt(stream.lane_offsets[instruction++], kernel_.i64()));
      lds_.gather(region, pages_->if_live(is_live, address), dma_bytes, stream.lds_line, region_offset + line_offset);
    }
  }
}

void LineTiles::gather_keys(int buffer, Value* tile, Value* entries) {
  Value* slot = kernel_.ir().CreateLShr(kernel_.lane(), kernel_.constant(3));
  std::vector<KeyPages::KeyPlace> places;  // of each line
  for (int line = 0; line < LdsPlan::lines_per_piece; line += waves_)
    places.push_back(pages_->place_of_key(tile, entries, row_of(slot, line)));
  const auto gather_stream = [&](const Stream& stream, int region, int region_offset) {
    for (std::size_t i = 0; i < places.size(); ++i) {
      for (int piece = 0; piece < stream.pieces; ++piece) {
        const int line = static_cast<int>(i) * waves_;
        const int line_offset = (piece * LdsPlan::lines_per_piece + line) * stream.line_bytes;
        Value* column =
            stream.lane_offsets[(i * static_cast<std::size_t>(stream.pieces)) + static_cast<std::size_t>(piece)];
        lds_.gather(region, pages_->row(stream.slice, places[i], column), dma_bytes, stream.lds_line,
                    region_offset + line_offset);
      }
    }
  };
  gather_stream(k_, k_region(buffer), plan_.k_offset(buffer));
  gather_stream(v_, v_region(buffer), plan_.v_offset(buffer));
}

void LineTiles::fill(const Stream& stream, int region, int region_offset, Value* tile, const TilePages::Place& place) {
  const bool in_page = tile_pages_.has_value();
  const language::Buffer from =
      in_page ? tile_pages_->rows(stream.slice, stream.row_bytes, place) : stream.slice.buffer;
  Value* tile_row = kernel_.ir().CreateMul(tile, kernel_.constant(tile_keys));
  Value* tile_offset = in_page ? kernel_.constant(0) : kernel_.ir().CreateMul(tile_row, stream.slice.row_stride);
  std::size_t instruction = 0;
  for (int line = 0; line < LdsPlan::lines_per_piece; line += waves_) {
    for (int piece = 0; piece < stream.pieces; ++piece) {
      const int line_offset = (piece * LdsPlan::lines_per_piece + line) * stream.line_bytes;
      lds_.fill(region, from, dma_bytes, stream.lane_offsets[instruction++], tile_offset, stream.lds_line,
                region_offset + line_offset);
    }
  }
}

void LineTiles::fetch_keys(int buffer, Value* tile, const TilePages::Place& place) {
  fill(k_, k_region(buffer), plan_.k_offset(buffer), tile, place);
}

void LineTiles::fetch_values(int buffer, Value* tile, const TilePages::Place& place) {
  fill(v_, v_region(buffer), plan_.v_offset(buffer), tile, place);
}

void LineTiles::fill_tile(int buffer, Value* tile, const Values& entries) {
  if (!pages_) {
    fetch_keys(buffer, tile);
    fetch_values(buffer, tile);
    return;
  }
  if (pages_->looks_up_each_key()) {
    gather_keys(buffer, tile, entries.front());
    return;
  }
  gather(k_, k_region(buffer), plan_.k_offset(buffer), tile, entries.front());
  gather(v_, v_region(buffer), plan_.v_offset(buffer), tile, entries.front());
}

Values LineTiles::start(Value* tile) {
  if (!pages_) {
    fill_tile(0, tile, {});
    return {};
  }
  fill_tile(0, tile, {pages_->entries(tile)});
  return {pages_->entries(kernel_.ir().CreateAdd(tile, kernel_.constant(1)))};
}

Values LineTiles::advance(int buffer, Value* tile, Value* tiles, const Values& in_flight) {
  // Before the barrier every wave has its own share of this tile in LDS and its reads of the previous tile behind it;
  // after it, this tile is whole and the other buffer is free. A wave that runs ahead is held by the next barrier, one
  // tile later, before it could touch either.
  language::wait_for_lds_fills(kernel_);
  language::barrier(kernel_);
  Value* next = kernel_.ir().CreateAdd(tile, kernel_.constant(1));
  return language::if_uniform(kernel_, kernel_.ir().CreateICmpSLT(next, tiles), language::Likelihood::even, in_flight,
                              [&](const Values& entries) -> Values {
                                fill_tile((buffer + 1) % plan_.buffers, next, entries);
                                if (!pages_) return {};
                                return {pages_->entries(kernel_.ir().CreateAdd(next, kernel_.constant(1)))};
                              });
}

language::OperandA LineTiles::keys(int buffer, int key_block, int dim_block) {
  constexpr int blocks_per_piece = LdsPlan::piece_elements / 16;
  const int piece = dim_block / blocks_per_piece;
  const int offset = plan_.k_offset(buffer) + piece * LdsPlan::lines_per_piece * plan_.k_line_bytes +
                     key_block * (32 / LdsPlan::lines_per_piece) * slot_bytes +
                     dim_block % blocks_per_piece * 16 * LdsPlan::element_bytes;
  return matrix_.operand_a(lds_.read(k_region(buffer), dma_bytes, k_read_, offset), language::KOrder::contiguous);
}

language::OperandA LineTiles::values_transposed(int buffer, int dim_block, int key_block) {
  return values_at(v_region(buffer), v_read_, plan_.v_offset(buffer), dim_block, key_block);
}

Value* LineTiles::values_start(Value* buffer) {
  llvm::IRBuilder<>& ir = kernel_.ir();
  return ir.CreateAdd(v_read_, ir.CreateMul(buffer, kernel_.constant(plan_.v_offset(1) - plan_.v_offset(0))));
}

language::OperandA LineTiles::values_transposed(Value* start, int dim_block, int key_block) {
  return values_at(language::Lds::any_region, start, plan_.v_offset(0), dim_block, key_block);
}

language::OperandA LineTiles::values_at(int region, Value* start, int tile_offset, int dim_block, int key_block) {
  constexpr int blocks_per_piece = LdsPlan::piece_elements / 32;
  const int piece = dim_block / blocks_per_piece;
  // 16 keys are two slots: keys 0 … 7 of the block on the first, 8 … 15 on the second.
  const int offset = tile_offset + piece * LdsPlan::lines_per_piece * plan_.v_line_bytes + 2 * key_block * slot_bytes +
                     dim_block % blocks_per_piece * 32 * LdsPlan::element_bytes;
  Value* first = lds_.read_transposed(region, start, offset);
  Value* second = lds_.read_transposed(region, start, offset + slot_bytes);
  return matrix_.operand_a(kernel_.ir().CreateShuffleVector(first, second, {0, 1, 2, 3}),
                           language::KOrder::accumulator_rows);
}

// [wave][slot][lane]: slots apart by less than an instruction's offset reaches. Made anew where it is used: it would
// live through the whole walk.
Value* LineTiles::kept_wave() const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  return ir.CreateAdd(ir.CreateMul(kernel_.wave(), kernel_.constant(kept_wave_bytes())),
                      kernel_.constant(plan_.merged_offset()));
}
Value* LineTiles::kept_place() const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  Value* wave = kept_wave();
  return ir.CreateAdd(wave, ir.CreateMul(kernel_.lane(), kernel_.constant(merged_lane_bytes)));
}
void LineTiles::keep(Value* place, int slot, Value* dwords, int byte_in_slot) const {
  lds_.write(kept_region(), dwords, place, (slot * plan_.merged_slot_bytes / waves_) + byte_in_slot);
}
Value* LineTiles::kept(Value* place, int slot) const {
  return lds_.read(kept_region(), merged_lane_bytes, place, slot * plan_.merged_slot_bytes / waves_);
}
void LineTiles::fetch_kept(Value* slot, const language::Buffer& from, Value* lane_offset, Value* uniform_offset) const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  Value* place = ir.CreateAdd(ir.CreateMul(kernel_.wave(), kernel_.constant(kept_wave_bytes())),
                              ir.CreateMul(slot, kernel_.constant(plan_.merged_slot_bytes / waves_)));
  lds_.fill(kept_region(), from, dma_bytes, lane_offset, uniform_offset, place, plan_.merged_offset());
}

}  // namespace wavejit::attention
