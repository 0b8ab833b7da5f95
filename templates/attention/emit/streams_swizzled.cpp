// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention/emit/streams_swizzled.h"

#include <algorithm>
#include <bit>
#include <map>
#include <memory>

#include "codegen/language/convert.h"
#include "codegen/language/lane_place.h"
#include "templates/attention/emit/scattered.h"
#include "templates/attention/emit/unseen_keys.h"

namespace wavejit::attention {
namespace {

using language::Value;
using language::Values;

int log2_of(int power) { return std::countr_zero(static_cast<unsigned>(power)); }

}  // namespace

Value* widened_fragment(language::Kernel& kernel, Value* bytes, CacheType cache, language::Element element) {
  Values dwords;
  for (const std::uint64_t dword : {0, 1})
    for (const int half : {0, 1})
      dwords.push_back(language::widen_bytes(kernel, kernel.ir().CreateExtractElement(bytes, dword), half,
                                             byte_element_of(cache), element));
  return language::gather_dwords(kernel, dwords);
}

SwizzledStream::SwizzledStream(language::Kernel& kernel, language::Lds& lds, const language::MatrixUnit& matrix,
                               const Slice& slice, int region, int offset, int dims, int threads,
                               const std::optional<KeyPages>& pages, const std::optional<TilePages>& tile_pages,
                               CacheType cache, int dims_kept)
    : kernel_(kernel),
      lds_(lds),
      matrix_(matrix),
      slice_(slice),
      region_(region),
      offset_(offset),
      cache_(cache),
      pitch_(TileShape::whole_row_bytes(dims * targets::bytes_of(matrix.element()))),
      memory_pitch_(((dims - dims_kept) * (cache == CacheType::as_queries ? targets::bytes_of(matrix.element()) : 1)) +
                    (dims_kept * targets::bytes_of(matrix.element()))),
      loaded_pitch_(memory_pitch_),
      dims_kept_(dims_kept),
      threads_(threads),
      pages_(pages),
      tile_pages_(tile_pages) {}

Value* SwizzledStream::in_row(Value* offset, Value* column) const {
  if (loaded_pitch_ == memory_pitch_) return offset;
  llvm::IRBuilder<>& ir = kernel_.ir();
  Value* has = ir.CreateICmpULT(column, kernel_.constant(memory_pitch_));
  return ir.CreateSelect(has, offset, ir.getInt32(language::far_outside));
}

Value* SwizzledStream::is_in_row(Value* exists, std::size_t load) const {
  if (loaded_pitch_ == memory_pitch_) return exists;
  return kernel_.ir().CreateAnd(exists, kernel_.ir().CreateICmpULT(loads_[load], kernel_.constant(memory_pitch_)));
}

Values SwizzledStream::fetch_scattered(Value* tile, Value* unseen) {
  llvm::IRBuilder<>& ir = kernel_.ir();
  Value* first = ir.CreateMul(tile, kernel_.constant(tile_keys));
  Value* offset = ir.CreateMul(first, slice_.row_stride);
  Values loaded;
  for (std::size_t i = 0; i < loads_.size(); ++i) {
    Value* exists = and_seen(kernel_, ir.CreateICmpULT(ir.CreateAdd(first, rows_[i]), slice_.rows), unseen, rows_[i]);
    load_scattered(slice_, kernel_, scattered_row(kernel_, slice_, exists, loads_[i]), offset, 0, elements_of_load(),
                   loaded);
  }
  return loaded;
}

Values SwizzledStream::packed(const Values& loaded) const {
  if (!slice_.scattered()) return loaded;
  const auto count = static_cast<std::size_t>(elements_of_load());
  Values whole;
  for (std::size_t first = 0; first < loaded.size(); first += count)
    whole.push_back(pack_scattered(kernel_, std::span(loaded).subspan(first, count), slice_.element_bytes));
  return whole;
}

Value* SwizzledStream::load_of_granule(const language::Buffer& granule, std::size_t load, Value* number,
                                       Value* unseen) const {
  if (unseen != nullptr)
    unseen = unseen_behind(kernel_, unseen, kernel_.ir().CreateMul(number, kernel_.constant(KeyPages::granule_keys)));
  return granule.load(width_, offset_of_seen(kernel_, loads_[load], unseen, slice_.row_stride), kernel_.constant(0));
}

Values SwizzledStream::fetch(Value* tile, const TilePages::Place& place, Value* unseen) {
  if (slice_.scattered()) return fetch_scattered(tile, unseen);
  llvm::IRBuilder<>& ir = kernel_.ir();
  if (tile_pages_) unseen = tile_pages_->unseen_of_rows(unseen);
  const auto load = [&](const language::Buffer& from, Value* offset) {
    Values loaded;
    for (Value* lane_offset : loads_)
      loaded.push_back(from.load(width_, offset_of_seen(kernel_, lane_offset, unseen, slice_.row_stride), offset));
    return loaded;
  };
  if (tile_pages_) return load(tile_pages_->rows(slice_, memory_pitch_, place), kernel_.constant(0));
  return load(slice_.buffer, ir.CreateMul(ir.CreateMul(tile, kernel_.constant(tile_keys)), slice_.row_stride));
}

std::array<Value*, 2> SwizzledStream::widened(Value* loaded, int dword) const {
  Value* bytes = loaded->getType()->isVectorTy()
                     ? kernel_.ir().CreateExtractElement(loaded, static_cast<std::uint64_t>(dword))
                     : loaded;
  return {language::widen_bytes(kernel_, bytes, 0, byte_element(), matrix_.element()),
          language::widen_bytes(kernel_, bytes, 1, byte_element(), matrix_.element())};
}

Value* SwizzledStream::widened_unit(Value* loaded, int half) const {
  const std::array<Value*, 2> first = widened(loaded, 2 * half);
  const std::array<Value*, 2> second = widened(loaded, (2 * half) + 1);
  return language::gather_dwords(kernel_, std::array{first[0], first[1], second[0], second[1]});
}

void SwizzledStream::refuse(const char* way) const {
  kernel_.refuse(std::string("a swizzled stream is not staged to be read ") + way + ": it has an image for each way");
}

// ---- Rows
// ------------------------------------------------------------------------------------------------------------

RowLoads::RowLoads(language::Kernel& kernel, language::Lds& lds, const language::MatrixUnit& matrix, const Slice& slice,
                   int region, int offset, int dims, int threads, const std::optional<KeyPages>& pages,
                   const std::optional<TilePages>& tile_pages, CacheType cache, int dims_kept, Runs runs)
    : SwizzledStream(kernel, lds, matrix, slice, region, offset, dims, threads, pages, tile_pages, cache, dims_kept),
      runs_(runs) {
  llvm::IRBuilder<>& ir = kernel.ir();
  const auto constant = [&](int value) { return kernel.constant(value); };
  const int wave_size = kernel.target().wave_size;
  Value* thread = threads == wave_size && kernel.threads() != wave_size ? kernel.lane() : kernel.thread();
  // All threads have as many units of a row of 16 bits where it has a multiple of four.
  constexpr int even_bytes = 4 * unit_bytes;
  if (!widens() && !slice.scattered()) loaded_pitch_ = (memory_pitch_ + even_bytes - 1) / even_bytes * even_bytes;
  width_ = std::min(unit_bytes, loaded_pitch_ * tile_keys / threads);

  // Consecutive threads take consecutive units of a row. The rows that one thread handles differ by a multiple of 8, so
  // their swizzle is the same; by 4 where one wave takes rows of 16 units (write).
  first_unit_ = ir.CreateAnd(thread, constant(run() - 1));
  first_row_ = ir.CreateLShr(thread, constant(log2_of(run())));
  if (by_granules_of_waves())
    first_row_ = ir.CreateAdd(ir.CreateMul(kernel.wave(), constant(tile_pages_->keys_of_wave())),
                              ir.CreateLShr(kernel.lane(), constant(log2_of(run()))));
  const int count = units() * tile_keys / threads_;
  if (by_rows_of_lanes()) {
    if (kernel.target().wave_size != tile_keys) kernel.refuse("waves that are no tile of rows wide");
    first_row_ = kernel.lane();
    first_unit_ = kernel.wave();
    Value* row_offset = ir.CreateMul(first_row_, slice_.row_stride);
    Value* unit_stride = ir.CreateMul(slice_.dim_stride, constant(elements_of_load()));
    for (int i = 0; i < count; ++i) {
      rows_.push_back(first_row_);
      Value* unit = ir.CreateAdd(first_unit_, constant(place_of(i).second));
      loads_.push_back(ir.CreateAdd(row_offset, ir.CreateMul(unit, unit_stride)));
    }
    return;
  }
  for (int i = 0; i < count; ++i) {
    const auto [rows, units] = place_of(i);
    Value* row = rows == 0 ? first_row_ : ir.CreateAdd(first_row_, constant(rows));
    if (looks_up_each_key()) keys_.push_back(row);
    if (pages_ || by_granules_of_waves()) row = ir.CreateAnd(row, constant(KeyPages::granule_keys - 1));
    Value* column =
        ir.CreateMul(units == 0 ? first_unit_ : ir.CreateAdd(first_unit_, constant(units)), constant(width_));
    loads_.push_back(looks_up_each_key() ? column
                                         : in_row(ir.CreateAdd(ir.CreateMul(row, slice_.row_stride), column), column));
  }
}

SwizzledRows::SwizzledRows(language::Kernel& kernel, language::Lds& lds, const language::MatrixUnit& matrix,
                           const Slice& slice, int region, int offset, int dims, int threads, Value* lane_group,
                           const std::optional<KeyPages>& pages, const std::optional<TilePages>& tile_pages,
                           CacheType cache, int dims_kept, Runs runs)
    : RowLoads(kernel, lds, matrix, slice, region, offset, dims, threads, pages, tile_pages, cache, dims_kept, runs) {
  llvm::IRBuilder<>& ir = kernel.ir();
  const auto constant = [&](int value) { return kernel.constant(value); };
  Value* lane = kernel.lane();

  // In: of 8 bits a unit is two of LDS, and the second one's place is the first one's xor 1.
  Value* unit = widens() ? ir.CreateShl(first_unit_, 1) : first_unit_;
  Value* swizzled = ir.CreateXor(unit, ir.CreateAnd(first_row_, constant(units_swizzled - 1)));
  write_ = ir.CreateAdd(ir.CreateMul(first_row_, constant(pitch_)), ir.CreateMul(swizzled, constant(unit_bytes)));
  if (dims_kept_ != 0) to_kept_ = ir.CreateMul(ir.CreateXor(unit, first_unit_), constant(unit_bytes));

  // Out: unit 2 · dim block + lane group, xor row % 8. Bits 1 and 2 of the unit go through the xor, bit 3 is plain.
  Value* fragment_row = language::row_of_lane(kernel, lane);
  Value* row_swizzle = ir.CreateAnd(lane, constant(units_swizzled - 1));
  Value* row_start = ir.CreateMul(fragment_row, constant(pitch_));
  for (int bits = 0; bits < units_swizzled; bits += 2) {
    Value* place = ir.CreateXor(ir.CreateXor(lane_group, row_swizzle), constant(bits));
    read_.push_back(ir.CreateAdd(row_start, ir.CreateMul(place, constant(unit_bytes))));
  }
}

void SwizzledRows::begin_rows(Value* block) {
  llvm::IRBuilder<>& ir = kernel_.ir();
  Value* bytes = ir.CreateMul(block, kernel_.constant(language::wave_shape(kernel_).rows * pitch_));
  for (Value*& start : read_) start = ir.CreateAdd(start, bytes);
}

Values SwizzledRows::starts() const {
  Values all = read_;
  all.push_back(write_);
  return all;
}

void SwizzledRows::set_starts(const Values& starts) {
  read_.assign(starts.begin(), starts.end() - 1);
  write_ = starts.back();
}

// How far load i stands from the thread's first one: runs of a row, then rows.
std::pair<int, int> RowLoads::place_of(int i) const {
  if (by_rows_of_lanes()) return {0, i * threads_ / kernel_.target().wave_size};
  const int runs = units() / run();
  return {i / runs * rows_apart(), i % runs * run()};
}

// A wave's part of a load is a few neighbouring rows, and those of all waves begin rows_apart() apart: a granule's
// descriptor serves the wave's loads in it.
Values RowLoads::fetch_from_pages(Value* tile, Value* entries, Value* unseen) {
  if (looks_up_each_key()) return fetch_single(tile, entries, unseen);
  llvm::IRBuilder<>& ir = kernel_.ir();
  const int rows_of_wave = kernel_.target().wave_size / run();
  Value* of_wave = kernel_.constant(0);
  if (rows_apart() > KeyPages::granule_keys)
    of_wave = ir.CreateLShr(ir.CreateMul(kernel_.wave(), kernel_.constant(rows_of_wave)),
                            kernel_.constant(log2_of(KeyPages::granule_keys)));
  struct Granule {
    language::Buffer rows;
    Value* number;
  };
  std::map<int, Granule> granules;
  Values loaded;
  for (int i = 0; i < loads(); ++i) {
    const int number = place_of(i).first / KeyPages::granule_keys;
    auto granule = granules.find(number);
    if (granule == granules.end()) {
      Value* place = ir.CreateAdd(of_wave, kernel_.constant(number));
      granule =
          granules.emplace(number, Granule{pages_->granule(slice_, memory_pitch_, tile, entries, place), place}).first;
    }
    loaded.push_back(
        load_of_granule(granule->second.rows, static_cast<std::size_t>(i), granule->second.number, unseen));
  }
  return loaded;
}

// Values are made where the first load asks for them: before all others, on the same path.
std::vector<SwizzledStream::Load> RowLoads::loads_of(Value* tile, const TilePages::Place& place, Value* entries,
                                                     Value* exists) {
  llvm::IRBuilder<>& ir = kernel_.ir();
  std::vector<Load> all;
  if (looks_up_each_key()) {
    const auto places = std::make_shared<std::map<Value*, KeyPages::KeyPlace>>();  // runs of one row have one
    for (std::size_t i = 0; i < loads_.size(); ++i)
      all.emplace_back([=, this] {
        auto found = places->find(keys_[i]);
        if (found == places->end()) {
          KeyPages::KeyPlace key = pages_->place_of_key(tile, entries, keys_[i]);
          key.exists = kernel_.ir().CreateAnd(key.exists, exists);
          found = places->emplace(keys_[i], key).first;
        }
        KeyPages::KeyPlace key = found->second;
        key.exists = is_in_row(key.exists, i);
        return language::load_lanes(kernel_, pages_->row(slice_, key, loads_[i]), width_);
      });
    return all;
  }
  // Far outside the descriptor where there is no such tile.
  constexpr std::uint32_t far = 0x80000000;
  Value* outside = ir.CreateSelect(exists, kernel_.constant(0), ir.getInt32(far));
  if (pages_) {
    const auto granules = std::make_shared<std::map<int, language::Buffer>>();
    for (int i = 0; i < loads(); ++i)
      all.emplace_back([=, this] {
        const int number = place_of(i).first / KeyPages::granule_keys;
        auto granule = granules->find(number);
        if (granule == granules->end())
          granule = granules->emplace(number, pages_->granule(slice_, memory_pitch_, tile, entries, granule_of(number)))
                        .first;
        Value* at = kernel_.ir().CreateOr(loads_[static_cast<std::size_t>(i)], outside);
        return granule->second.load(width_, at, kernel_.constant(0));
      });
    return all;
  }
  const language::Buffer from = tile_pages_ ? tile_pages_->rows(slice_, memory_pitch_, place) : slice_.buffer;
  Value* offset = tile_pages_ ? kernel_.constant(0)
                              : ir.CreateMul(ir.CreateMul(tile, kernel_.constant(tile_keys)), slice_.row_stride);
  for (Value* lane_offset : loads_)
    all.emplace_back([=, this] { return from.load(width_, kernel_.ir().CreateOr(lane_offset, outside), offset); });
  return all;
}

Value* RowLoads::granule_of(int number) const {
  Value* of_wave = kernel_.constant(0);
  const int rows_of_wave = kernel_.target().wave_size / run();
  if (rows_apart() > KeyPages::granule_keys)
    of_wave = kernel_.ir().CreateLShr(kernel_.ir().CreateMul(kernel_.wave(), kernel_.constant(rows_of_wave)),
                                      kernel_.constant(log2_of(KeyPages::granule_keys)));
  return kernel_.ir().CreateAdd(of_wave, kernel_.constant(number));
}

Values RowLoads::fetch_single(Value* tile, Value* entries, Value* unseen) {
  Values loaded;
  std::map<Value*, KeyPages::KeyPlace> places;  // runs of one row have one
  for (std::size_t i = 0; i < loads_.size(); ++i) {
    auto place = places.find(keys_[i]);
    if (place == places.end())
      place = places.emplace(keys_[i], pages_->place_of_key(tile, entries, keys_[i], unseen)).first;
    KeyPages::KeyPlace key = place->second;
    key.exists = is_in_row(key.exists, i);
    loaded.push_back(language::load_lanes(kernel_, pages_->row(slice_, key, loads_[i]), width_));
  }
  return loaded;
}

language::Strand SwizzledRows::write(const Values& in_flight) {
  language::Strand strand;
  const Values loaded = packed(in_flight);
  for (int i = 0; i < loads(); ++i) {
    Value* dwords = loaded[static_cast<std::size_t>(i)];
    if (!widens()) {
      strand.add([=, this] { write_unit(dwords, i, 0); });
      continue;
    }
    // Four conversions, or four of two instructions, and an address.
    for (const int half : {0, 1}) strand.add([=, this] { write_unit(widened_unit(dwords, half), i, half); }, 6);
  }
  return strand;
}

void SwizzledRows::write_first_rows(std::span<Value* const> loaded, int first, int origin) {
  for (std::size_t i = 0; i < loaded.size(); ++i)
    write_unit(loaded[i], first + static_cast<int>(i), 0, place_of(origin).first);
}

void SwizzledRows::write_unit(Value* dwords, int load, int half, int rows_before) {
  const auto [rows_of_tile, units_apart] = place_of(load);
  const int rows = rows_of_tile - rows_before;
  const int units = (widens() ? 2 : 1) * units_apart;
  // Keys below 4, and rows that are multiples of 4: the swizzle changes by xor. So it does with the units of a lane
  // that has one row, of which the first is the number of a wave.
  const int swizzle = (rows % units_swizzled ^ units % units_swizzled ^ half) * unit_bytes;
  Value* place = swizzle == 0 ? write_ : kernel_.ir().CreateXor(write_, kernel_.constant(swizzle));
  lds_.write(region_, dwords, place, offset_ + rows * pitch_ + units / units_swizzled * units_swizzled * unit_bytes);
}

language::OperandA SwizzledRows::rows(int /*buffer*/, int row_block, int dim_block) {
  const int unit = 2 * dim_block;
  const auto swizzled = static_cast<std::size_t>(unit % units_swizzled / 2);
  const int offset = offset_ + row_block * language::wave_shape(kernel_).rows * pitch_ +
                     unit / units_swizzled * units_swizzled * unit_bytes;
  return matrix_.operand_a(lds_.read(region_, unit_bytes, read_[swizzled], offset), language::KOrder::contiguous);
}

language::OperandA SwizzledRows::transposed(int /*buffer*/, int /*dim_block*/, int /*row_block*/) {
  refuse("transposed");
  return {};
}

}  // namespace wavejit::attention
