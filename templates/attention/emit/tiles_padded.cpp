// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention/emit/tiles_padded.h"

#include <algorithm>
#include <bit>

#include "codegen/language/control.h"
#include "codegen/language/lane_place.h"
#include "templates/attention/emit/unseen_keys.h"

namespace wavejit::attention {
namespace {

using language::Value;
using language::Values;

constexpr int padded_k_region = 0;
constexpr int padded_v_region = 1;
constexpr int unit_bytes = 16;
// A transposing load: lanes that exchange elements, and elements that a lane has.
constexpr int turned_lanes = 8;

int log2_of(int power) { return std::countr_zero(static_cast<unsigned>(power)); }

Values undefined_like(const Values& values) {
  Values undefined;
  for (Value* value : values) undefined.push_back(llvm::PoisonValue::get(value->getType()));
  return undefined;
}

// Per lane: where the even fragments of a row begin, and the odd ones. One would do; but the backend puts a read beside
// another one that is less than 64 bytes from it, far from where the schedule has it.
Values reads_of(language::Kernel& kernel, int row_bytes, Value* lane_group) {
  llvm::IRBuilder<>& ir = kernel.ir();
  Value* even = ir.CreateAdd(ir.CreateMul(language::row_of_lane(kernel, kernel.lane()), kernel.constant(row_bytes)),
                             ir.CreateMul(lane_group, kernel.constant(unit_bytes)));
  Value* odd = ir.CreateAdd(even, kernel.constant(language::wave_shape(kernel).fragment_bytes()));
  return {even, language::opaque_in_lanes(kernel, odd)};
}

}  // namespace

// ---- K
// ---------------------------------------------------------------------------------------------------------------

PaddedRows::PaddedRows(language::Kernel& kernel, language::Lds& lds, const language::MatrixUnit& matrix,
                       const Slice& slice, int region, int offset, int dims, int threads, Value* lane_group,
                       const std::optional<KeyPages>& pages, const std::optional<TilePages>& tile_pages)
    : RowLoads(kernel, lds, matrix, slice, region, offset, dims, threads, pages, tile_pages, CacheType::as_queries),
      row_bytes_(LdsPlan::padded_row_bytes(memory_pitch_)) {
  llvm::IRBuilder<>& ir = kernel.ir();
  const auto times = [&](Value* value, int factor) { return ir.CreateMul(value, kernel.constant(factor)); };
  write_ = ir.CreateAdd(times(first_row_, row_bytes_), times(first_unit_, unit_bytes));
  read_ = reads_of(kernel, row_bytes_, lane_group);
}

language::Strand PaddedRows::write(const Values& loaded) {
  language::Strand strand;
  for (int i = 0; i < loads(); ++i) {
    strand.add([=, this, dwords = loaded[static_cast<std::size_t>(i)]] {
      const auto [rows, units] = place_of(i);
      lds_.write(region_, dwords, write_, offset_ + (rows * row_bytes_) + (units * unit_bytes));
    });
  }
  return strand;
}

language::OperandA PaddedRows::rows(int /*buffer*/, int row_block, int dim_block) {
  const targets::WaveShape wave = language::wave_shape(kernel_);
  const int place = offset_ + (row_block * wave.rows * row_bytes_) + (dim_block / 2 * 2 * wave.fragment_bytes());
  return matrix_.operand_a(lds_.read(region_, unit_bytes, read_[static_cast<std::size_t>(dim_block % 2)], place),
                           language::KOrder::contiguous);
}

language::OperandA PaddedRows::transposed(int /*buffer*/, int /*dim_block*/, int /*row_block*/) {
  refuse("transposed");
  return {};
}

// ---- V
// ---------------------------------------------------------------------------------------------------------------

PaddedTransposed::PaddedTransposed(language::Kernel& kernel, language::Lds& lds, const language::MatrixUnit& matrix,
                                   const Slice& slice, int region, int offset, int dims, int waves, Value* lane_group,
                                   const std::optional<KeyPages>& pages)
    : kernel_(kernel),
      lds_(lds),
      matrix_(matrix),
      slice_(slice),
      region_(region),
      offset_(offset),
      row_bytes_(LdsPlan::padded_row_bytes(tile_keys * targets::bytes_of(matrix.element()))),
      memory_row_bytes_(dims * targets::bytes_of(matrix.element())),
      pages_(pages) {
  llvm::IRBuilder<>& ir = kernel.ir();
  const auto constant = [&](int value) { return kernel.constant(value); };
  const auto times = [&](Value* value, int factor) { return ir.CreateMul(value, constant(factor)); };
  const int rows = language::wave_shape(kernel).rows;  // of a block: keys, and dims
  const int block_bytes = rows * targets::bytes_of(matrix.element());
  const int key_blocks = tile_keys / rows;
  const int waves_of_keys = waves / key_blocks;
  if (kernel.target().row_block != turned_lanes || waves % key_blocks != 0 ||
      LdsPlan::padded_turned_dims(dims) % (waves_of_keys * rows) != 0)
    kernel.refuse(
        "blocks of V that do not divide evenly among the waves, or are not transposed in the order of the accumulators");
  blocks_ = LdsPlan::padded_turned_dims(dims) / rows / std::max(waves_of_keys, 1);

  // Wave w loads keys of block w mod 4, and an equal part of their dims.
  key_block_ = ir.CreateAnd(kernel.wave(), constant(key_blocks - 1));
  Value* part = ir.CreateLShr(kernel.wave(), constant(log2_of(key_blocks)));
  // Lane l loads key 8 (l / 16) + l mod 8 of the block, from dim 8 (l / 8 mod 2) on. The transposing load gives it dim
  // l mod 16 of the eight keys from 8 (l / 16) on: the lane's part of an operand.
  Value* lane = kernel.lane();
  Value* eighth = ir.CreateLShr(lane, constant(log2_of(turned_lanes)));
  Value* row = ir.CreateAdd(times(lane_group, turned_lanes), ir.CreateAnd(lane, constant(turned_lanes - 1)));
  if (!pages_) row = ir.CreateAdd(row, times(key_block_, rows));
  row_offset_ = ir.CreateMul(row, slice_.row_stride);
  Value* column =
      ir.CreateAdd(times(part, blocks_ * block_bytes), times(ir.CreateAnd(eighth, constant(1)), unit_bytes));
  // Dims past the row's end are nobody's: any of the row's do.
  const bool whole = memory_row_bytes_ % (waves_of_keys * block_bytes) == 0;
  for (int block = 0; block < (whole ? 1 : blocks_); ++block) {
    Value* begin = block == 0 ? column : ir.CreateAdd(column, constant(block * block_bytes));
    columns_.push_back(
        whole ? begin
              : ir.CreateBinaryIntrinsic(llvm::Intrinsic::umin, begin, constant(memory_row_bytes_ - unit_bytes)));
  }

  read_ = reads_of(kernel, row_bytes_, lane_group);
  write_ = ir.CreateAdd(read_.front(),
                        ir.CreateAdd(times(key_block_, block_bytes), times(part, blocks_ * rows * row_bytes_)));
}

Values PaddedTransposed::fetch(Value* tile, Value* entries, Value* unseen) const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  const auto larger = [&](Value* a, Value* b) { return ir.CreateBinaryIntrinsic(llvm::Intrinsic::umax, a, b); };
  Value* number = key_block_;
  if (pages_) {
    if (unseen != nullptr) number = larger(number, ir.CreateUDiv(unseen, kernel_.constant(KeyPages::granule_keys)));
    // After the last key there is no granule. The last one is read instead; its own first rows may be unseen.
    number = pages_->living_granule(tile, number);
    if (unseen != nullptr)
      unseen = unseen_behind(kernel_, unseen, ir.CreateMul(number, kernel_.constant(KeyPages::granule_keys)));
  }
  const language::Buffer from =
      pages_ ? pages_->granule(slice_, memory_row_bytes_, tile, entries, number) : slice_.buffer;
  Value* row = row_offset_;
  if (unseen != nullptr) row = larger(row, ir.CreateMul(unseen, slice_.row_stride));
  if (!pages_)
    row = ir.CreateAdd(row, ir.CreateMul(ir.CreateMul(tile, kernel_.constant(tile_keys)), slice_.row_stride));
  // The row's begin, and that of the last one.
  Value* last = ir.CreateSub(from.bytes(), kernel_.constant(memory_row_bytes_));
  row = ir.CreateBinaryIntrinsic(llvm::Intrinsic::umin, row, last);
  Values places;
  for (Value* column : columns_) places.push_back(ir.CreateAdd(row, column));
  const int block_bytes = language::wave_shape(kernel_).rows * targets::bytes_of(matrix_.element());
  Values loaded;
  for (int block = 0; block < blocks_; ++block) {
    const bool has_own = places.size() > 1;
    loaded.push_back(language::load_transposed(kernel_, from.base(),
                                               places[has_own ? static_cast<std::size_t>(block) : 0],
                                               has_own ? 0 : block * block_bytes));
  }
  return loaded;
}

void PaddedTransposed::write(const Values& loaded) const {
  const int rows = language::wave_shape(kernel_).rows;
  for (int block = 0; block < blocks_; ++block)
    lds_.write(region_, loaded[static_cast<std::size_t>(block)], write_, offset_ + (block * rows * row_bytes_));
}

language::OperandA PaddedTransposed::rows(int /*buffer*/, int /*row_block*/, int /*dim_block*/) {
  kernel_.refuse("values that are turned on their way are not read by rows");
  return {};
}

language::OperandA PaddedTransposed::transposed(int /*buffer*/, int dim_block, int row_block) {
  const targets::WaveShape wave = language::wave_shape(kernel_);
  const int place = offset_ + (dim_block * wave.rows * row_bytes_) + (row_block / 2 * 2 * wave.fragment_bytes());
  return matrix_.operand_a(lds_.read(region_, unit_bytes, read_[static_cast<std::size_t>(row_block % 2)], place),
                           language::KOrder::accumulator_rows);
}

// ---- Both
// ------------------------------------------------------------------------------------------------------------

PaddedTiles::PaddedTiles(language::Kernel& kernel, const TileShape& shape, const LdsPlan& plan,
                         const KeyTensors& tensors, Value* lane_group, const language::MatrixUnit& matrix)
    : kernel_(kernel),
      lds_(kernel, plan.total_bytes(), 2),
      pages_(pages_of(kernel, shape.layout, tensors)),
      first_seen_(tensors.first_seen),
      any_value_(
          kernel.ir().CreateICmpSGE(tensors.last_key, first_seen_ == nullptr ? kernel.constant(0) : first_seen_)),
      k_(kernel, lds_, matrix, tensors.k, padded_k_region, plan.k_offset(0), shape.dims_k,
         shape.waves * kernel.target().wave_size, lane_group, pages_, no_tile_pages_),
      v_(kernel, lds_, matrix, tensors.v, padded_v_region, plan.v_offset(0), shape.dims_v, shape.waves, lane_group,
         pages_) {}

PaddedTiles::InFlight PaddedTiles::parts_of(const Values& in_flight) const {
  const auto values = in_flight.begin() + k_.values_in_flight();
  const auto entries = values + v_.loads();
  return {.keys = {in_flight.begin(), values},
          .values = {values, entries},
          .entries = entries == in_flight.end() ? nullptr : *entries};
}

Values PaddedTiles::together(const InFlight& parts) {
  Values all = parts.keys;
  all.insert(all.end(), parts.values.begin(), parts.values.end());
  if (parts.entries != nullptr) all.push_back(parts.entries);
  return all;
}

Values PaddedTiles::fetch_keys(const Stop& stop, const TileWalk& walk, Value* entries) {
  Value* tile = walk.tile_at(stop);
  return pages_ ? k_.fetch_from_pages(tile, entries) : k_.fetch(tile, {});
}

Values PaddedTiles::start(const Stops& stops, const TileWalk& walk) {
  Value* tile = walk.tile_at(stops[0]);
  Value* entries = pages_ ? pages_->entries(tile) : nullptr;
  InFlight parts;
  parts.keys = fetch_keys(stops[0], walk, entries);
  const Values zeros(static_cast<std::size_t>(v_.loads()),
                     llvm::Constant::getNullValue(kernel_.vector(kernel_.i32(), unit_bytes / 4)));
  parts.values = language::if_uniform(kernel_, any_value_, language::Likelihood::even, zeros, [&](const Values&) {
    return v_.fetch(tile, entries, unseen_keys(kernel_, first_seen_, tile));
  });
  if (pages_) parts.entries = pages_->entries(walk.tile_at(stops[1]));
  return together(parts);
}

Values PaddedTiles::begin(const Stops& stops, const TileWalk& walk, const Values& in_flight) {
  InFlight parts = parts_of(in_flight);
  k_.write(parts.keys).write_rest();
  parts.keys =
      language::if_uniform(kernel_, walk.exists(stops[1].place), language::Likelihood::even, undefined_like(parts.keys),
                           [&](const Values&) { return fetch_keys(stops[1], walk, parts.entries); });
  arrive();
  return together(parts);
}

void PaddedTiles::arrive() {
  language::wait_for_lds(kernel_);
  language::arrive(kernel_);
}

Values PaddedTiles::put_values(const Stops& stops, const TileWalk& walk, const Values& in_flight) {
  InFlight parts = parts_of(in_flight);
  v_.write(parts.values);
  Values next = undefined_like(parts.values);
  if (pages_) next.push_back(parts.entries);
  next =
      language::if_uniform(kernel_, walk.exists(stops[1].place), language::Likelihood::even, next, [&](const Values&) {
        Values loaded = v_.fetch(walk.tile_at(stops[1]), parts.entries);
        if (pages_) loaded.push_back(pages_->entries(walk.tile_at(stops[2])));
        return loaded;
      });
  if (pages_) {
    parts.entries = next.back();
    next.pop_back();
  }
  parts.values = next;
  return together(parts);
}

Values PaddedTiles::put_keys(const Stops& stops, const TileWalk& walk, const Values& in_flight) {
  InFlight parts = parts_of(in_flight);
  k_.write(parts.keys).write_rest();
  parts.keys =
      language::if_uniform(kernel_, walk.exists(stops[2].place), language::Likelihood::even, undefined_like(parts.keys),
                           [&](const Values&) { return fetch_keys(stops[2], walk, parts.entries); });
  return together(parts);
}

}  // namespace wavejit::attention
