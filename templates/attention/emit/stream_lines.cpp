// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention/emit/stream_lines.h"

#include <bit>

#include "codegen/language/lane_place.h"
#include "codegen/language/synchronize.h"
#include "templates/attention/emit/unseen_keys.h"

namespace wavejit::attention {
namespace {

using language::Value;

// A permuted image (kernel/lds_layout.h): bits of a byte's place that its row changes.
constexpr int unit_key_mask = 3;     // of the slot, which are the low bits of the key
constexpr int unit_key_of_line = 4;  // on odd lines
// Neighbouring rows: half a piece, which is a block of 32 dims of 16 bits.
constexpr int half_piece_bytes = LdsPlan::piece_bytes / 2;

}  // namespace

int LineStream::row_block_bytes() const {
  if (has_neighbours()) return language::wave_shape(kernel_).rows / LdsPlan::lines_per_piece * place_.line_bytes;
  return language::wave_shape(kernel_).rows / lines_of_piece() * piece_bytes();
}

Value* LineStream::slot_bit_of(Value* line) const {
  if (has_halves()) return kernel_.constant(0);
  return kernel_.ir().CreateAnd(kernel_.ir().CreateLShr(line, kernel_.constant(1)), kernel_.constant(1));
}

// kernel/lds_layout.h
Value* LineStream::neighbour_key(Value* line, Value* slot) const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  const auto constant = [&](int value) { return kernel_.constant(value); };
  if (place_.neighbours == NeighbourRows::transposed) return ir.CreateShl(ir.CreateAnd(slot, constant(3)), 1);
  return ir.CreateXor(slot, ir.CreateAnd(ir.CreateLShr(line, constant(1)), constant(1)));
}

Value* LineStream::unit_key_of(Value* line, Value* slot) const {
  if (has_halves()) return line;
  llvm::IRBuilder<>& ir = kernel_.ir();
  const auto constant = [&](int value) { return kernel_.constant(value); };
  Value* odd = ir.CreateMul(ir.CreateAnd(line, constant(1)), constant(unit_key_of_line));
  if (!place_.bytes) return ir.CreateXor(odd, ir.CreateAnd(slot, constant(unit_key_mask)));
  // Two slots, which one transposed read of bytes has, are two units apart.
  Value* turned = ir.CreateOr(ir.CreateShl(ir.CreateAnd(slot, constant(1)), 1),
                              ir.CreateAnd(ir.CreateLShr(slot, constant(1)), constant(1)));
  return ir.CreateXor(odd, turned);
}

// Wave w fills lines w, w + waves, …: lane l fetches 16 bytes of row 8 · (l / 8) + line, so that the line is 64 lanes ·
// 16 bytes as the DMA writes them.
LineStream::LineStream(language::Kernel& kernel, language::Lds& lds, const language::MatrixUnit& matrix,
                       const Slice& slice, const Place& place, int dims, int waves,
                       const std::optional<KeyPages>& pages, const std::optional<TilePages>& tile_pages)
    : kernel_(kernel),
      lds_(lds),
      matrix_(matrix),
      slice_(slice),
      place_(place),
      row_bytes_(dims * (place.bytes ? 1 : targets::bytes_of(matrix.element()))),
      pieces_((row_bytes_ + piece_bytes() - 1) / piece_bytes()),
      waves_(waves),
      filler_(place.own_images ? kernel.constant(0) : kernel.wave()),
      pages_(pages),
      tile_pages_(tile_pages),
      lds_line_(kernel.ir().CreateMul(filler_, kernel.constant(place.line_bytes))) {
  llvm::IRBuilder<>& ir = kernel_.ir();
  const auto constant = [&](int value) { return kernel_.constant(value); };
  if (place.permuted && waves % (unit_key_mask + 1) != 0) kernel.refuse("a permuted image is filled by waves in fours");
  if (has_neighbours() && (waves != LdsPlan::lines_per_piece || has_halves()))
    kernel.refuse("lines of neighbouring rows that are not a wave's");
  Value* of_lane = slot();
  // 16 lanes fetch rows of one granule.
  if (pages_) of_lane = ir.CreateAnd(of_lane, constant((KeyPages::granule_keys / lines_of_piece()) - 1));
  Value* column = ir.CreateMul(unit_of_lane(), constant(dma_bytes));
  if (row_bytes_ % piece_bytes() != 0) column_ = column;
  const bool by_key = pages_ && pages_->looks_up_each_key();
  for (int line = 0; line < lines_of_piece(); line += waves_) {
    Value* of_tile = has_neighbours() ? row_of_granule(of_lane) : row_of(of_lane, line);
    Value* row = by_key ? column : ir.CreateAdd(ir.CreateMul(of_tile, slice_.row_stride), column);
    // The piece is added here and not as the instruction's offset, which would move the LDS address along.
    for (int piece = 0; piece < pieces_; ++piece) lane_offsets_.push_back(in_piece(row, piece));
  }
}

Value* LineStream::in_piece(Value* row, int piece) const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  Value* offset = piece == 0 ? row : ir.CreateAdd(row, kernel_.constant(piece * piece_bytes()));
  if (column_ == nullptr || piece + 1 < pieces_ || pages_) return offset;
  // Far outside the descriptor.
  return ir.CreateSelect(has_bytes(), offset, ir.getInt32(language::far_outside));
}

Value* LineStream::is_in_row(Value* exists, int piece) const {
  if (column_ == nullptr || piece + 1 < pieces_) return exists;
  return kernel_.ir().CreateAnd(exists, has_bytes());
}

// Asked anew wherever it is used: the answer would live in scalar registers, of which pages leave none.
Value* LineStream::has_bytes() const {
  return kernel_.ir().CreateICmpULT(language::opaque_in_lanes(kernel_, column_),
                                    kernel_.constant(row_bytes_ % piece_bytes()));
}

Value* LineStream::row_of(Value* slot, int line) const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  return ir.CreateAdd(ir.CreateMul(slot, kernel_.constant(lines_of_piece())),
                      ir.CreateAdd(filler_, kernel_.constant(line)));
}

Value* LineStream::row_of_granule(Value* slot) const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  Value* line = ir.CreateAnd(filler_, kernel_.constant(KeyPages::granule_keys / LdsPlan::lines_per_piece - 1));
  return ir.CreateAdd(ir.CreateMul(line, kernel_.constant(LdsPlan::lines_per_piece)), slot);
}

std::vector<Value*> LineStream::offsets_of_line(std::size_t line) const {
  const auto first = lane_offsets_.begin() + static_cast<std::ptrdiff_t>(line * static_cast<std::size_t>(pieces_));
  std::vector<Value*> offsets(first, first + pieces_);
  if (!few_offsets_) return offsets;
  Value* row = language::opaque_in_lanes(kernel_, offsets.front());
  for (int piece = 0; piece < pieces_; ++piece) offsets[static_cast<std::size_t>(piece)] = in_piece(row, piece);
  return offsets;
}

// Which slot of a line this lane fills, and which unit of its row it fetches. In a permuted image a wave's lines are
// alike: their numbers differ by multiples of four.
Value* LineStream::slot() const {
  const int lane_bits = std::countr_zero(static_cast<unsigned>(piece_bytes() / dma_bytes));
  Value* at = kernel_.ir().CreateLShr(kernel_.lane(), kernel_.constant(lane_bits));
  return place_.permuted ? kernel_.ir().CreateXor(at, slot_bit_of(filler_)) : at;
}

Value* LineStream::unit_of_lane() const {
  Value* at = kernel_.ir().CreateAnd(kernel_.lane(), kernel_.constant((piece_bytes() / dma_bytes) - 1));
  if (has_neighbours()) return kernel_.ir().CreateXor(at, neighbour_key(filler_, slot()));
  return place_.permuted ? kernel_.ir().CreateXor(at, unit_key_of(filler_, slot())) : at;
}

int LineStream::line_offset(int piece, int line) const { return (piece * lines_of_piece() + line) * place_.line_bytes; }

// Row = lane % 32 stands on line row % 8 at slot row / 8; a lane group starts 8 elements in.
void LineStream::begin_rows(Value* lane_group, Value* first_row_block) {
  llvm::IRBuilder<>& ir = kernel_.ir();
  const auto constant = [&](int value) { return kernel_.constant(value); };
  Value* row = language::row_of_lane(kernel_, kernel_.lane());
  if (has_neighbours()) {
    begin_neighbour_rows(row, lane_group);
    return;
  }
  Value* line = ir.CreateAnd(row, constant(lines_of_piece() - 1));
  Value* at = ir.CreateLShr(row, constant(std::countr_zero(static_cast<unsigned>(lines_of_piece()))));
  // In an image of bytes a unit is the dims of both lane groups.
  Value* unit = place_.bytes ? constant(0) : lane_group;
  if (place_.permuted) {
    unit = ir.CreateXor(unit, unit_key_of(line, at));
    at = ir.CreateXor(at, slot_bit_of(line));
  }
  rows_start_ = ir.CreateMul(line, constant(place_.line_bytes));
  rows_start_ = ir.CreateAdd(rows_start_, ir.CreateMul(at, constant(piece_bytes())));
  rows_start_ = ir.CreateAdd(rows_start_, ir.CreateMul(unit, constant(dma_bytes)));
  if (place_.bytes) rows_start_ = ir.CreateAdd(rows_start_, ir.CreateMul(lane_group, constant(dma_bytes / 2)));
  if (first_row_block != nullptr)
    rows_start_ = ir.CreateAdd(rows_start_, ir.CreateMul(first_row_block, constant(row_block_bytes())));
}

// Row n stands on line n / 8 at slot n % 8. A block of dims, two units, changes bits that a key changes, too.
void LineStream::begin_neighbour_rows(Value* row, Value* lane_group) {
  llvm::IRBuilder<>& ir = kernel_.ir();
  const auto constant = [&](int value) { return kernel_.constant(value); };
  constexpr int row_bits = std::countr_zero(static_cast<unsigned>(LdsPlan::lines_per_piece));
  Value* line = ir.CreateLShr(row, constant(row_bits));
  Value* at = ir.CreateAnd(row, constant(LdsPlan::lines_per_piece - 1));
  Value* unit = ir.CreateXor(lane_group, neighbour_key(line, at));
  Value* start = ir.CreateAdd(ir.CreateMul(line, constant(place_.line_bytes)), ir.CreateMul(at, constant(slot_bytes)));
  start = ir.CreateAdd(start, ir.CreateMul(unit, constant(dma_bytes)));
  for (std::size_t block = 0; block < neighbour_rows_.size(); ++block)
    neighbour_rows_[block] = ir.CreateXor(start, constant(static_cast<int>(block) * 2 * dma_bytes));
}

// All of a permuted image's bits that a key changes are those of a piece: what stands before a piece is added, and what
// a block of dims or of rows changes is one more key.
void LineStream::enter_rows(Value* image) {
  Value* at_first = kernel_.ir().CreateAdd(rows_start_, kernel_.constant(at(0).offset));
  Value* start = language::opaque_in_lanes(kernel_, kernel_.ir().CreateAdd(at_first, image));
  const int block_bytes = place_.bytes ? dma_bytes : 2 * dma_bytes;
  for (int block = 0; block < piece_bytes() / block_bytes; ++block)
    entered_rows_[static_cast<std::size_t>(block)] =
        kernel_.ir().CreateXor(start, kernel_.constant(block * block_bytes));
}

void LineStream::enter_transposed(Value* image) {
  Value* at_first = kernel_.ir().CreateAdd(transposed_start_, kernel_.constant(at(0).offset));
  Value* start = language::opaque_in_lanes(kernel_, kernel_.ir().CreateAdd(at_first, image));
  for (std::size_t which = 0; which < entered_transposed_.size(); ++which) {
    if (place_.bytes) {
      // A quarter of a piece is two units; the next 16 rows are two slots, whose key is one more.
      entered_transposed_[which] = kernel_.ir().CreateXor(start, kernel_.constant(static_cast<int>(which) * dma_bytes));
      continue;
    }
    // As units: half a piece is four, 16 rows are two slots, whose key is two more; the second of them is one more.
    const int units = static_cast<int>(which);
    entered_transposed_[which] =
        kernel_.ir().CreateXor(start, kernel_.constant((units * dma_bytes) + (units % 2 * slot_bytes)));
  }
}

// A transpose read takes, in each group of 16 lanes, four rows of 16 elements. Lane group h reads rows 4h … 4h + 3
// (lines 4h … 4h + 3); lanes 4r … 4r + 3 of 16 supply row r; the second 16 lanes take the next 16 dims.
void LineStream::begin_transposed(Value* lane_group) {
  llvm::IRBuilder<>& ir = kernel_.ir();
  const auto constant = [&](int value) { return kernel_.constant(value); };
  Value* lane = kernel_.lane();
  Value* in_sixteen = ir.CreateAnd(lane, constant(targets::transpose_lanes - 1));
  if (has_neighbours()) {
    // Rows 4h … 4h + 3 are slots of one line; a lane has half of a unit.
    Value* row = ir.CreateLShr(in_sixteen, constant(2));
    Value* at = ir.CreateAdd(ir.CreateMul(lane_group, constant(4)), row);
    const auto bit = [&](int of) { return ir.CreateAnd(ir.CreateLShr(lane, constant(of)), constant(1)); };
    Value* unit = ir.CreateXor(ir.CreateAdd(ir.CreateMul(bit(4), constant(2)), bit(1)), neighbour_key(nullptr, at));
    transposed_start_ = ir.CreateAdd(ir.CreateMul(at, constant(slot_bytes)), ir.CreateMul(unit, constant(dma_bytes)));
    transposed_start_ = ir.CreateAdd(transposed_start_, ir.CreateMul(bit(0), constant(dma_bytes / 2)));
    second_transposed_start_ = ir.CreateXor(transposed_start_, constant(half_piece_bytes));
    return;
  }
  if (place_.permuted) {
    Value* line = ir.CreateAdd(ir.CreateMul(lane_group, constant(4)), ir.CreateLShr(in_sixteen, constant(2)));
    const auto bit = [&](int of) { return ir.CreateAnd(ir.CreateLShr(lane, constant(of)), constant(1)); };
    Value* unit = ir.CreateAdd(ir.CreateMul(bit(4), constant(2)), bit(1));
    unit = ir.CreateXor(unit, unit_key_of(line, constant(0)));
    transposed_start_ = ir.CreateAdd(ir.CreateMul(line, constant(place_.line_bytes)),
                                     ir.CreateMul(slot_bit_of(line), constant(slot_bytes)));
    transposed_start_ = ir.CreateAdd(transposed_start_, ir.CreateMul(unit, constant(dma_bytes)));
    transposed_start_ = ir.CreateAdd(transposed_start_, ir.CreateMul(bit(0), constant(dma_bytes / 2)));
    return;
  }
  Value* start = ir.CreateMul(lane_group, constant(4 * place_.line_bytes));
  start = ir.CreateAdd(start, ir.CreateMul(ir.CreateLShr(in_sixteen, constant(2)), constant(place_.line_bytes)));
  Value* second_sixteen = ir.CreateAnd(ir.CreateLShr(lane, constant(4)), constant(1));
  start = ir.CreateAdd(
      start, ir.CreateMul(second_sixteen, constant(targets::transpose_lanes * targets::bytes_of(matrix_.element()))));
  transposed_start_ = ir.CreateAdd(start, ir.CreateMul(ir.CreateAnd(lane, constant(3)), constant(8)));
}

// Eight rows of 16 bytes: those of lane group h are rows 4h … 4h + 3 of two neighbouring slots; lanes 2r and 2r + 1 of
// 16 supply row r. Where a row's piece is half of one, lane groups have slots of their own on four lines.
void LineStream::begin_transposed_bytes(Value* lane_group) {
  llvm::IRBuilder<>& ir = kernel_.ir();
  const auto constant = [&](int value) { return kernel_.constant(value); };
  const auto bits = [&](int from, int mask) {
    return ir.CreateAnd(ir.CreateLShr(kernel_.lane(), constant(from)), constant(mask));
  };
  Value* line = has_halves() ? bits(1, 3) : ir.CreateAdd(ir.CreateMul(lane_group, constant(4)), bits(1, 3));
  if (place_.permuted) {
    Value* at = bits(3, 1);
    Value* unit = ir.CreateXor(bits(4, 1), unit_key_of(line, at));
    transposed_start_ = ir.CreateAdd(ir.CreateMul(line, constant(place_.line_bytes)),
                                     ir.CreateMul(ir.CreateXor(at, slot_bit_of(line)), constant(slot_bytes)));
    transposed_start_ = ir.CreateAdd(transposed_start_, ir.CreateMul(unit, constant(dma_bytes)));
    transposed_start_ = ir.CreateAdd(transposed_start_, ir.CreateMul(bits(0, 1), constant(dma_bytes / 2)));
    return;
  }
  Value* start =
      ir.CreateAdd(ir.CreateMul(line, constant(place_.line_bytes)), ir.CreateMul(bits(3, 1), constant(slot_bytes)));
  if (has_halves()) start = ir.CreateAdd(start, ir.CreateMul(lane_group, constant(piece_bytes())));
  start = ir.CreateAdd(start, ir.CreateMul(bits(4, 1), constant(targets::transpose_lanes)));
  transposed_start_ = ir.CreateAdd(start, ir.CreateMul(bits(0, 1), constant(dma_bytes / 2)));
}

void LineStream::begin_transposed(Value* lane_group, Value* first_piece) {
  begin_transposed(lane_group);
  llvm::IRBuilder<>& ir = kernel_.ir();
  transposed_start_ = ir.CreateAdd(transposed_start_, ir.CreateMul(first_piece, kernel_.constant(line_offset(1, 0))));
}

void LineStream::begin_narrow_transposed(Value* lane_group, Value* first_dim) {
  begin_transposed_bytes(lane_group);
  llvm::IRBuilder<>& ir = kernel_.ir();
  Value* piece = ir.CreateUDiv(first_dim, kernel_.constant(slot_bytes));
  transposed_start_ = ir.CreateAdd(transposed_start_, ir.CreateMul(piece, kernel_.constant(line_offset(1, 0))));
  // A unit further is one more key.
  transposed_start_ = ir.CreateXor(transposed_start_, ir.CreateAnd(first_dim, kernel_.constant(slot_bytes - 1)));
}

void LineStream::fetch(int buffer, Value* tile, const TilePages::Place& place, Value* unseen) {
  fill(lds_line_, buffer, tile, place, unseen);
}
void LineStream::fetch(Value* image, Value* tile, const TilePages::Place& place, Value* unseen) {
  fill(kernel_.ir().CreateAdd(lds_line_, image), 0, tile, place, unseen);
}

void LineStream::leave_out_unseen(std::vector<Value*>& offsets, Value* unseen) const {
  if (unseen == nullptr) return;
  llvm::IRBuilder<>& ir = kernel_.ir();
  if (tile_pages_) unseen = tile_pages_->unseen_of_rows(unseen);
  Value* is_unseen = ir.CreateICmpULT(offsets.front(), ir.CreateMul(unseen, slice_.row_stride));
  for (Value*& offset : offsets) offset = ir.CreateSelect(is_unseen, ir.getInt32(language::far_outside), offset);
}

void LineStream::fill(Value* lds_line, int buffer, Value* tile, const TilePages::Place& place, Value* unseen) {
  const bool in_page = tile_pages_.has_value();
  const language::Buffer from = in_page ? tile_pages_->rows(slice_, row_bytes_, place) : slice_.buffer;
  Value* tile_row = kernel_.ir().CreateMul(tile, kernel_.constant(tile_keys));
  Value* tile_offset = in_page ? kernel_.constant(0) : kernel_.ir().CreateMul(tile_row, slice_.row_stride);
  std::size_t of_wave = 0;
  for (int line = 0; line < lines_of_piece(); line += waves_) {
    std::vector<Value*> offsets = offsets_of_line(of_wave++);
    leave_out_unseen(offsets, unseen);
    for (int piece = 0; piece < pieces_; ++piece)
      lds_.fill(fill_region(buffer), from, dma_bytes, offsets[static_cast<std::size_t>(piece)], tile_offset, lds_line,
                at(buffer).offset + line_offset(piece, line));
  }
}

// A line has keys of all four granules, whose pages may be anywhere: every lane has an address of its own.
void LineStream::gather(int buffer, Value* tile, Value* entries, Value* unseen) {
  llvm::IRBuilder<>& ir = kernel_.ir();
  Value* rows = pages_->lane_rows(slice_, tile, entries);
  Value* of_lane = slot();
  std::size_t of_wave = 0;
  for (int line = 0; line < lines_of_piece(); line += waves_) {
    Value* row = row_of(of_lane, line);
    Value* is_live = pages_->is_live(tile, row, unseen);
    const std::vector<Value*> offsets = offsets_of_line(of_wave++);
    for (int piece = 0; piece < pieces_; ++piece) {
      Value* address = ir.CreateAdd(rows, ir.CreateZExt(offsets[static_cast<std::size_t>(piece)], kernel_.i64()));
      lds_.gather(fill_region(buffer), pages_->if_live(is_in_row(is_live, piece), address), dma_bytes, lds_line_,
                  at(buffer).offset + line_offset(piece, line));
    }
  }
}

std::vector<LineStream::Transfer> LineStream::transfers_of_line(Value* image, Value* tile,
                                                                const TilePages::Place& place, Value* entries,
                                                                std::size_t line, Value* exists, Value* unseen) {
  llvm::IRBuilder<>& ir = kernel_.ir();
  const int first = static_cast<int>(line) * waves_;
  const std::size_t at_first = line * static_cast<std::size_t>(pieces_);
  const int region = fill_region(0);
  const int offset = at(0).offset;
  Value* lds_line = ir.CreateAdd(lds_line_, image);
  std::vector<Transfer> transfers;
  if (pages_) {
    // Per lane where the row begins, or zeros that are read in place of it.
    const bool by_key = pages_->looks_up_each_key();
    Value* in_tile = row_of(slot(), first);
    KeyPages::KeyPlace key = {};
    Value* start = nullptr;
    Value* is_live = nullptr;
    if (by_key) {
      key = pages_->place_of_key(tile, entries, in_tile, unseen);
      key.exists = ir.CreateAnd(key.exists, exists);
      // Half a piece has lanes of its own, and a lookup, which must not wait behind the other's transfers: the backend
      // counts these as LDS reads.
      if (piece_bytes() < LdsPlan::piece_bytes) key.page = language::opaque_in_lanes(kernel_, key.page);
    } else {
      start = pages_->lane_rows(slice_, tile, entries);
      is_live = pages_->is_live(tile, in_tile, unseen, exists);
    }
    Value* row = language::opaque_in_lanes(kernel_, lane_offsets_[at_first]);
    // Zeros as long as a row: pieces are told apart by the instruction's offset.
    if (by_key && pages_->zero_bytes() >= row_bytes_) {
      Value* address = pages_->row(slice_, key, row);
      // Made here: scalar registers have no room for what would choose between keys and zeros later.
      if (place_.bytes) address = language::opaque_in_lanes(kernel_, address);
      for (int piece = 0; piece < pieces_; ++piece)
        transfers.emplace_back([=, this] {
          lds_.gather(region, address, dma_bytes, lds_line, offset + line_offset(piece, first), piece * piece_bytes());
        });
      return transfers;
    }
    for (int piece = 0; piece < pieces_; ++piece)
      transfers.emplace_back([=, this] {
        llvm::IRBuilder<>& here = kernel_.ir();
        Value* column = here.CreateAdd(row, kernel_.constant(piece * piece_bytes()));
        KeyPages::KeyPlace place_of_piece = key;
        if (by_key) place_of_piece.exists = is_in_row(key.exists, piece);
        Value* address = by_key ? pages_->row(slice_, place_of_piece, column)
                                : pages_->if_live(is_in_row(is_live, piece),
                                                  here.CreateAdd(start, here.CreateZExt(column, kernel_.i64())));
        lds_.gather(region, address, dma_bytes, lds_line, offset + line_offset(piece, first));
      });
    return transfers;
  }
  const bool in_page = tile_pages_.has_value();
  const language::Buffer from = in_page ? tile_pages_->rows(slice_, row_bytes_, place) : slice_.buffer;
  Value* tile_offset =
      in_page ? kernel_.constant(0) : ir.CreateMul(ir.CreateMul(tile, kernel_.constant(tile_keys)), slice_.row_stride);
  // Far outside the descriptor where there is no such tile.
  Value* outside = ir.CreateSelect(exists, kernel_.constant(0), ir.getInt32(0x80000000));
  Value* row = ir.CreateOr(lane_offsets_[at_first], outside);
  if (tile_pages_) unseen = tile_pages_->unseen_of_rows(unseen);
  row = language::opaque_in_lanes(kernel_, offset_of_seen(kernel_, row, unseen, slice_.row_stride));
  for (int piece = 0; piece < pieces_; ++piece)
    transfers.emplace_back([=, this] {
      Value* lane_offset = in_piece(row, piece);
      lds_.fill(region, from, dma_bytes, lane_offset, tile_offset, lds_line, offset + line_offset(piece, first));
    });
  return transfers;
}

std::vector<LineStream::Transfer> LineStream::transfers_of_rows(Value* image, std::size_t line,
                                                                const std::function<Value*(Value*)>& begins) {
  llvm::IRBuilder<>& ir = kernel_.ir();
  const int first = static_cast<int>(line) * waves_;
  Value* lds_line = ir.CreateAdd(lds_line_, image);
  Value* row = ir.CreateAdd(begins(row_of(slot(), first)), ir.CreateMul(unit_of_lane(), kernel_.constant(dma_bytes)));
  std::vector<Transfer> transfers;
  transfers.reserve(static_cast<std::size_t>(pieces_));
  for (int piece = 0; piece < pieces_; ++piece)
    transfers.emplace_back([=, this] {
      Value* lane_offset = kernel_.ir().CreateAdd(row, kernel_.constant(piece * piece_bytes()));
      lds_.fill(fill_region(0), slice_.buffer, dma_bytes, lane_offset, kernel_.constant(0), lds_line,
                at(0).offset + line_offset(piece, first));
    });
  return transfers;
}

std::vector<KeyPages::KeyPlace> LineStream::places_of_lines(Value* tile, Value* entries, Value* unseen) const {
  Value* of_lane = slot();
  std::vector<KeyPages::KeyPlace> places;
  for (int line = 0; line < lines_of_piece(); line += waves_)
    places.push_back(pages_->place_of_key(tile, entries, row_of(of_lane, line), unseen));
  return places;
}

void LineStream::gather(int buffer, const std::vector<KeyPages::KeyPlace>& places) {
  for (std::size_t i = 0; i < places.size(); ++i) {
    const std::vector<Value*> offsets = offsets_of_line(i);
    for (int piece = 0; piece < pieces_; ++piece) {
      KeyPages::KeyPlace place = places[i];
      place.exists = is_in_row(place.exists, piece);
      lds_.gather(fill_region(buffer), pages_->row(slice_, place, offsets[static_cast<std::size_t>(piece)]), dma_bytes,
                  lds_line_, at(buffer).offset + line_offset(piece, static_cast<int>(i) * waves_));
    }
  }
}

}  // namespace wavejit::attention
