// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention/emit/tiles_swizzled.h"

#include <llvm/IR/IntrinsicsAMDGPU.h>

#include <bit>
#include <map>

#include "codegen/language/control.h"
#include "codegen/language/convert.h"
#include "codegen/language/synchronize.h"

namespace wavejit::attention {
namespace {

using language::Value;
using language::Values;

constexpr int unit_bytes = 16;
constexpr int units_swizzled = 8;  // 8 units of 16 bytes are all 32 banks
constexpr int v_row_bytes = 128;   // 64 keys of one dim
constexpr int v_keys_per_thread = 4;

int log2_of(int power) { return std::countr_zero(static_cast<unsigned>(power)); }

}  // namespace

SwizzledTiles::SwizzledTiles(language::Kernel& kernel, const TileShape& shape, const LdsPlan& plan,
                             const KeyTensors& tensors, Value* lane_group, const language::MatrixUnit& matrix)
    : kernel_(kernel),
      plan_(plan),
      k_(tensors.k),
      v_(tensors.v),
      matrix_(matrix),
      lds_(kernel, plan.total_bytes(), 2),
      threads_(shape.waves * kernel.target().wave_size),
      k_row_bytes_(shape.dims_k * LdsPlan::element_bytes),
      pages_(pages_of(kernel, shape.layout, tensors)),
      tile_pages_(tile_pages_of(kernel, shape.layout, tensors)),
      v_key_bytes_(shape.dims_v * LdsPlan::element_bytes),
      v_dims_per_thread_(shape.dims_v * tile_keys / (pass_threads * v_keys_per_thread)) {
  llvm::IRBuilder<>& ir = kernel.ir();
  const auto constant = [&](int value) { return kernel.constant(value); };
  Value* thread = kernel.thread();
  Value* lane = kernel.lane();
  Value* group = lane_group;

  // K in: consecutive threads take consecutive units of a row. The rows that one thread handles differ by a multiple of
  // 8, so their swizzle is the same; by 4 where one wave takes rows of 16 units (write_keys).
  Value* unit = ir.CreateAnd(thread, constant(k_run() - 1));
  Value* key = ir.CreateLShr(thread, constant(log2_of(k_run())));
  const bool by_key = pages_ && pages_->looks_up_each_key();
  for (int i = 0; i < k_loads(); ++i) {
    const auto [rows, units] = k_place(i);
    Value* row = rows == 0 ? key : ir.CreateAdd(key, constant(rows));
    if (by_key) k_keys_.push_back(row);
    if (pages_) row = ir.CreateAnd(row, constant(KeyPages::granule_keys - 1));
    Value* column = ir.CreateMul(units == 0 ? unit : ir.CreateAdd(unit, constant(units)), constant(unit_bytes));
    k_load_.push_back(by_key ? column : ir.CreateAdd(ir.CreateMul(row, k_.row_stride), column));
  }
  Value* swizzled = ir.CreateXor(unit, ir.CreateAnd(key, constant(units_swizzled - 1)));
  k_write_ = ir.CreateAdd(ir.CreateMul(key, constant(k_row_bytes_)), ir.CreateMul(swizzled, constant(unit_bytes)));

  // K out: unit 2 · dim block + lane group, xor key % 8. Bits 1 and 2 of the unit go through the xor, bit 3 is plain.
  Value* fragment_key = ir.CreateAnd(lane, constant(31));
  Value* key_swizzle = ir.CreateAnd(lane, constant(units_swizzled - 1));
  Value* key_row = ir.CreateMul(fragment_key, constant(k_row_bytes_));
  for (int bits = 0; bits < units_swizzled; bits += 2) {
    Value* place = ir.CreateXor(ir.CreateXor(group, key_swizzle), constant(bits));
    k_read_.push_back(ir.CreateAdd(key_row, ir.CreateMul(place, constant(unit_bytes))));
  }

  // V in: 16 dim groups × 16 key groups. The 16 lanes that write to LDS together are 8 dim groups, whose swizzles fill
  // all units of a row, × 2 key groups, which stand in the two halves of a unit (bit 1 of the key group, see below):
  // every bank once.
  const auto bit = [&](int of, int to) {
    return ir.CreateShl(ir.CreateAnd(ir.CreateLShr(thread, constant(of)), constant(1)), constant(to));
  };
  Value* dim_group = ir.CreateOr(ir.CreateAnd(thread, constant(7)), bit(4, 3));
  Value* key_group =
      ir.CreateOr(ir.CreateShl(ir.CreateLShr(thread, constant(6)), constant(2)), ir.CreateOr(bit(3, 1), bit(5, 0)));
  for (int i = 0; i < passes() * v_keys_per_thread; ++i) {
    const int key_of_pass = i / v_keys_per_thread * (tile_keys / passes()) + i % v_keys_per_thread;
    Value* row = ir.CreateAdd(ir.CreateMul(key_group, constant(v_keys_per_thread)), constant(key_of_pass));
    if (by_key) v_keys_.push_back(row);
    if (pages_) row = ir.CreateAnd(row, constant(KeyPages::granule_keys - 1));
    Value* column = ir.CreateMul(dim_group, constant(v_dims_per_thread_ * LdsPlan::element_bytes));
    v_load_.push_back(by_key ? column : ir.CreateAdd(ir.CreateMul(row, v_.row_stride), column));
  }
  // Key group g = 4s + q stands in unit 2s + q % 2, upper half for q ≥ 2. The swizzle of the thread's first dim; the
  // others differ from it by a constant.
  Value* first_dim = ir.CreateMul(dim_group, constant(v_dims_per_thread_));
  const auto swizzle_of = [&](Value* dim) {
    return ir.CreateAnd(ir.CreateXor(dim, ir.CreateLShr(dim, constant(3))), constant(units_swizzled - 1));
  };
  Value* v_unit = ir.CreateLShr(thread, constant(5));
  Value* upper = ir.CreateAnd(ir.CreateLShr(thread, constant(3)), constant(1));
  v_write_ = ir.CreateAdd(ir.CreateMul(first_dim, constant(v_row_bytes)),
                          ir.CreateMul(ir.CreateXor(v_unit, swizzle_of(first_dim)), constant(unit_bytes)));
  v_write_ = ir.CreateAdd(v_write_, ir.CreateMul(upper, constant(unit_bytes / 2)));

  // V out: dim = 32 · dim block + lane % 32, unit 2 · key block + lane group.
  Value* dim = ir.CreateAnd(lane, constant(31));
  Value* dim_row = ir.CreateMul(dim, constant(v_row_bytes));
  for (int bits = 0; bits < units_swizzled; bits += 2) {
    Value* place = ir.CreateXor(ir.CreateXor(group, swizzle_of(dim)), constant(bits));
    v_read_.push_back(ir.CreateAdd(dim_row, ir.CreateMul(place, constant(unit_bytes))));
  }
}

// How far load i stands from the thread's first one: runs of a row, then rows.
std::pair<int, int> SwizzledTiles::k_place(int i) const {
  const int runs = k_units() / k_run();
  return {i / runs * k_rows_apart(), i % runs * k_run()};
}

Values SwizzledTiles::load_keys(const language::Buffer& from, Value* offset) {
  Values loaded;
  for (Value* lane_offset : k_load_) loaded.push_back(from.load(unit_bytes, lane_offset, offset));
  return loaded;
}

Values SwizzledTiles::load_values(const language::Buffer& from, Value* offset) {
  Values loaded;
  for (Value* lane_offset : v_load_)
    loaded.push_back(from.load(v_dims_per_thread_ * LdsPlan::element_bytes, lane_offset, offset));
  return loaded;
}

Value* SwizzledTiles::dense_offset(const Slice& slice, Value* tile) const {
  return kernel_.ir().CreateMul(kernel_.ir().CreateMul(tile, kernel_.constant(tile_keys)), slice.row_stride);
}

Values SwizzledTiles::fetch_keys(Value* tile, const TilePages::Place& place) {
  const Slice& slice = k_;
  if (!tile_pages_) return load_keys(slice.buffer, dense_offset(slice, tile));
  return load_keys(tile_pages_->rows(slice, k_row_bytes_, place), kernel_.constant(0));
}

Values SwizzledTiles::fetch_values(Value* tile, const TilePages::Place& place) {
  const Slice& slice = v_;
  if (!tile_pages_) return load_values(slice.buffer, dense_offset(slice, tile));
  return load_values(tile_pages_->rows(slice, v_key_bytes_, place), kernel_.constant(0));
}

// A wave's part of a load is a few neighbouring rows, and those of all waves begin k_rows_apart() apart: a granule's
// descriptor serves the wave's loads in it.
Values SwizzledTiles::load_keys(Value* tile, Value* entries) {
  llvm::IRBuilder<>& ir = kernel_.ir();
  const int rows_of_wave = kernel_.target().wave_size / k_run();
  Value* of_wave = kernel_.constant(0);
  if (k_rows_apart() > KeyPages::granule_keys)
    of_wave = ir.CreateLShr(ir.CreateMul(kernel_.wave(), kernel_.constant(rows_of_wave)),
                            kernel_.constant(log2_of(KeyPages::granule_keys)));
  std::map<int, language::Buffer> granules;
  Values loaded;
  for (int i = 0; i < k_loads(); ++i) {
    const int number = k_place(i).first / KeyPages::granule_keys;
    auto granule = granules.find(number);
    if (granule == granules.end()) {
      Value* place = ir.CreateAdd(of_wave, kernel_.constant(number));
      granule = granules.emplace(number, pages_->granule(k_, k_row_bytes_, tile, entries, place)).first;
    }
    loaded.push_back(granule->second.load(unit_bytes, k_load_[static_cast<std::size_t>(i)], kernel_.constant(0)));
  }
  return loaded;
}

// In each pass wave w transposes the 16 keys of one granule.
Values SwizzledTiles::load_values(Value* tile, Value* entries) {
  const int waves = threads_ / kernel_.target().wave_size;
  Values loaded;
  for (int pass = 0; pass < passes(); ++pass) {
    Value* number = kernel_.ir().CreateAdd(kernel_.wave(), kernel_.constant(pass * waves));
    const language::Buffer granule = pages_->granule(v_, v_key_bytes_, tile, entries, number);
    for (int i = 0; i < v_keys_per_thread; ++i)
      loaded.push_back(
          granule.load(v_dims_per_thread_ * LdsPlan::element_bytes,
                       v_load_[(static_cast<std::size_t>(pass) * v_keys_per_thread) + static_cast<std::size_t>(i)],
                       kernel_.constant(0)));
  }
  return loaded;
}

Values SwizzledTiles::load_single_keys(Value* tile, Value* entries) {
  Values loaded;
  std::map<Value*, KeyPages::KeyPlace> places;  // runs of one row have one
  for (std::size_t i = 0; i < k_load_.size(); ++i) {
    auto place = places.find(k_keys_[i]);
    if (place == places.end())
      place = places.emplace(k_keys_[i], pages_->place_of_key(tile, entries, k_keys_[i])).first;
    loaded.push_back(language::load_lanes(kernel_, pages_->row(k_, place->second, k_load_[i]), unit_bytes));
  }
  return loaded;
}

Values SwizzledTiles::load_single_values(Value* tile, Value* entries) {
  Values loaded;
  for (std::size_t i = 0; i < v_load_.size(); ++i) {
    const KeyPages::KeyPlace place = pages_->place_of_key(tile, entries, v_keys_[i]);
    loaded.push_back(
        language::load_lanes(kernel_, pages_->row(v_, place, v_load_[i]), v_dims_per_thread_ * LdsPlan::element_bytes));
  }
  return loaded;
}

Values SwizzledTiles::load(Value* tile, Value* entries) {
  const bool by_key = pages_ && pages_->looks_up_each_key();
  Values loaded = by_key ? load_single_keys(tile, entries) : pages_ ? load_keys(tile, entries) : fetch_keys(tile, {});
  const Values values = by_key   ? load_single_values(tile, entries)
                        : pages_ ? load_values(tile, entries)
                                 : fetch_values(tile, {});
  loaded.insert(loaded.end(), values.begin(), values.end());
  if (pages_) loaded.push_back(pages_->entries(kernel_.ir().CreateAdd(tile, kernel_.constant(1))));
  return loaded;
}

Values SwizzledTiles::start(Value* tile) { return load(tile, pages_ ? pages_->entries(tile) : nullptr); }

language::Strand SwizzledTiles::write_keys(const Values& loaded) {
  language::Strand strand;
  for (int i = 0; i < k_loads(); ++i) {
    strand.add([=, this] {
      const auto [rows, units] = k_place(i);
      // Keys below 4, and rows that are multiples of 4: the swizzle changes by xor.
      const int swizzle = rows % units_swizzled * unit_bytes;
      Value* place = swizzle == 0 ? k_write_ : kernel_.ir().CreateXor(k_write_, kernel_.constant(swizzle));
      lds_.write(k_region, loaded[static_cast<std::size_t>(i)], place,
                 plan_.k_offset(0) + rows * k_row_bytes_ + units * unit_bytes);
    });
  }
  return strand;
}

// Four rows of dwords, two dims each → for every dim a pair of dwords, four keys.
language::Strand SwizzledTiles::write_values(const Values& loaded) {
  llvm::IRBuilder<>& ir = kernel_.ir();
  const auto pair = [=, &ir](int key, int dim) {
    constexpr std::uint32_t low_halves = 0x05040100;
    constexpr std::uint32_t high_halves = 0x07060302;
    const auto dword = static_cast<std::uint64_t>(dim / 2);
    Value* low = ir.CreateExtractElement(loaded[static_cast<std::size_t>(key)], dword);
    Value* high = ir.CreateExtractElement(loaded[static_cast<std::size_t>(key) + 1], dword);
    // v_perm_b32: selector bytes 0–3 name the second source, 4–7 the first.
    Value* selector = ir.getInt32(dim % 2 == 0 ? low_halves : high_halves);
    return ir.CreateIntrinsic(llvm::Intrinsic::amdgcn_perm, {}, {high, low, selector});
  };
  language::Strand strand;
  for (int i = 0; i < passes() * v_dims_per_thread_; ++i) {
    const int dim = i % v_dims_per_thread_;
    const int first_key = i / v_dims_per_thread_ * v_keys_per_thread;
    // The first dim of a thread is a multiple of its dim count, and the first unit of its keys one of the passes that
    // come before: the low bits of the swizzle change by xor.
    const int units = dim ^ (i / v_dims_per_thread_ * units_swizzled / passes());
    // Two permutes and, but for the first, an address.
    strand.add(
        [=, this, &ir] {
          Value* const dwords[] = {pair(first_key, dim), pair(first_key + 2, dim)};
          Value* place = units == 0 ? v_write_ : ir.CreateXor(v_write_, kernel_.constant(units * unit_bytes));
          lds_.write(v_region, language::gather_dwords(kernel_, dwords), place, plan_.v_offset(0) + dim * v_row_bytes);
        },
        3);
  }
  return strand;
}

Values SwizzledTiles::advance(int /*buffer*/, Value* tile, Value* tiles, const Values& in_flight) {
  // Nobody reads the previous tile any more …
  language::wait_for_lds(kernel_);
  language::barrier(kernel_);
  const auto values = in_flight.begin() + k_loads();
  write_keys({in_flight.begin(), values}).write_rest();
  write_values({values, values + (passes() * v_keys_per_thread)}).write_rest();
  // … and everybody's part of this one has arrived.
  language::wait_for_lds(kernel_);
  language::barrier(kernel_);
  Values nothing;
  for (Value* value : in_flight) nothing.push_back(llvm::PoisonValue::get(value->getType()));
  Value* next = kernel_.ir().CreateAdd(tile, kernel_.constant(1));
  return language::if_uniform(kernel_, kernel_.ir().CreateICmpSLT(next, tiles), language::Likelihood::even, nothing,
                              [&](const Values&) { return load(next, in_flight.back()); });
}

language::OperandA SwizzledTiles::keys(int /*buffer*/, int key_block, int dim_block) {
  const int unit = 2 * dim_block;
  const auto swizzled = static_cast<std::size_t>(unit % units_swizzled / 2);
  const int offset =
      plan_.k_offset(0) + key_block * 32 * k_row_bytes_ + unit / units_swizzled * units_swizzled * unit_bytes;
  return matrix_.operand_a(lds_.read(k_region, unit_bytes, k_read_[swizzled], offset), language::KOrder::contiguous);
}

language::OperandA SwizzledTiles::values_transposed(int /*buffer*/, int dim_block, int key_block) {
  // 32 · dim block adds 4 · dim block to d / 8, of which the swizzle sees bit 2.
  const auto swizzled = static_cast<std::size_t>((2 * key_block ^ (4 * (dim_block % 2))) / 2);
  const int offset = plan_.v_offset(0) + dim_block * 32 * v_row_bytes;
  return matrix_.operand_a(lds_.read(v_region, unit_bytes, v_read_[swizzled], offset),
                           language::KOrder::accumulator_rows);
}

}  // namespace wavejit::attention
