// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The transposed image of a swizzled stream (streams_swizzled.h).
#include <llvm/IR/IntrinsicsAMDGPU.h>

#include <algorithm>
#include <bit>

#include "codegen/language/convert.h"
#include "codegen/language/lane_place.h"
#include "templates/attention/emit/streams_swizzled.h"

namespace wavejit::attention {
namespace {

using language::Value;
using language::Values;

constexpr int transposed_rows_per_thread = 4;
// Dims that all threads turn at once, 16 bytes of a row each.
constexpr int widest_block = 128;

int bits_below(int power) { return std::countr_zero(static_cast<unsigned>(power)); }

}  // namespace

SwizzledTransposed::SwizzledTransposed(language::Kernel& kernel, language::Lds& lds, const language::MatrixUnit& matrix,
                                       const Slice& slice, int region, int offset, int dims, int threads,
                                       Value* lane_group, const std::optional<KeyPages>& pages,
                                       const std::optional<TilePages>& tile_pages, CacheType cache)
    : SwizzledStream(kernel, lds, matrix, slice, region, offset, dims, threads, pages, tile_pages, cache),
      blocks_of_row_((LdsPlan::turned_dims(dims) + widest_block - 1) / widest_block),
      dims_per_thread_(std::min(LdsPlan::turned_dims(dims), widest_block) * tile_keys /
                       (pass_threads * transposed_rows_per_thread)) {
  llvm::IRBuilder<>& ir = kernel.ir();
  const auto constant = [&](int value) { return kernel.constant(value); };
  Value* thread = kernel.thread();
  Value* lane = kernel.lane();
  width_ = dims_per_thread_ * memory_pitch_ / dims;
  loaded_pitch_ = LdsPlan::turned_dims(dims) * memory_pitch_ / dims;

  // In: 16 dim groups × 16 row groups. The 16 lanes that write to LDS together are 8 dim groups, whose swizzles fill
  // all units of a row, × 2 row groups, which stand in the two halves of a unit (bit 1 of the row group, see below):
  // every bank once.
  const auto bit = [&](int of, int to) {
    return ir.CreateShl(ir.CreateAnd(ir.CreateLShr(thread, constant(of)), constant(1)), constant(to));
  };
  Value* dim_group = ir.CreateOr(ir.CreateAnd(thread, constant(7)), bit(4, 3));
  // A unit's rows are those that a lane group holds of an accumulator: two blocks of four, or one of eight. So one bit
  // of a row group is the half of its unit, the other one the lane group.
  const bool halves_in_a_row = kernel.target().row_block != transposed_rows_per_thread;
  const int half_bit = halves_in_a_row ? 0 : 1;
  constexpr int threads_of_unit_bits = std::countr_zero(static_cast<unsigned>(pass_threads / units_swizzled));
  Value* row_group = ir.CreateOr(ir.CreateShl(ir.CreateLShr(thread, constant(threads_of_unit_bits + 1)), constant(2)),
                                 ir.CreateOr(bit(3, half_bit), bit(threads_of_unit_bits, 1 - half_bit)));
  for (int load = 0; load < blocks_of_row_ * rows_of_block(); ++load) {
    const int i = load % rows_of_block();
    const int row_of_pass = i / transposed_rows_per_thread * (tile_keys / passes()) + i % transposed_rows_per_thread;
    Value* row = ir.CreateAdd(ir.CreateMul(row_group, constant(transposed_rows_per_thread)), constant(row_of_pass));
    if (looks_up_each_key()) keys_.push_back(row);
    if (pages_ || (tile_pages_ && tile_pages_->by_wave()))
      row = ir.CreateAnd(row, constant(KeyPages::granule_keys - 1));
    Value* column = ir.CreateMul(dim_group, constant(width_));
    const int block = load / rows_of_block();
    if (block != 0) column = ir.CreateAdd(column, constant(block * loaded_pitch_ / blocks_of_row_));
    if (slice_.scattered()) {
      rows_.push_back(row);
      Value* first_dim = ir.CreateMul(dim_group, constant(dims_per_thread_));
      if (block != 0) first_dim = ir.CreateAdd(first_dim, constant(block * widest_block));
      column = ir.CreateMul(first_dim, slice_.dim_stride);
    }
    loads_.push_back(looks_up_each_key() ? column
                                         : in_row(ir.CreateAdd(ir.CreateMul(row, slice_.row_stride), column), column));
  }
  // Row group g = 4s + q stands in unit 2s + q % 2, upper half for q ≥ 2; of blocks of eight in unit 2s + q / 2, upper
  // half for odd q. The swizzle of the thread's first dim; the
  // others differ from it by a constant.
  Value* first_dim = ir.CreateMul(dim_group, constant(dims_per_thread_));
  const auto swizzle_of = [&](Value* dim) {
    return ir.CreateAnd(ir.CreateXor(dim, ir.CreateLShr(dim, constant(3))), constant(units_swizzled - 1));
  };
  Value* unit = ir.CreateLShr(thread, constant(threads_of_unit_bits));
  Value* upper = ir.CreateAnd(ir.CreateLShr(thread, constant(3)), constant(1));
  write_ = ir.CreateAdd(ir.CreateMul(first_dim, constant(transposed_row_bytes())),
                        ir.CreateMul(ir.CreateXor(unit, swizzle_of(first_dim)), constant(unit_bytes)));
  write_ = ir.CreateAdd(write_, ir.CreateMul(upper, constant(unit_bytes / 2)));

  // Out: dim = rows of a wave · dim block + the lane's row, unit 2 · row block + lane group.
  Value* dim = language::row_of_lane(kernel, lane);
  Value* dim_row = ir.CreateMul(dim, constant(transposed_row_bytes()));
  for (int bits = 0; bits < units_swizzled; bits += 2) {
    Value* place = ir.CreateXor(ir.CreateXor(lane_group, swizzle_of(dim)), constant(bits));
    read_.push_back(ir.CreateAdd(dim_row, ir.CreateMul(place, constant(unit_bytes))));
  }
}

int SwizzledTransposed::rows_of_block() const { return passes() * transposed_rows_per_thread; }

Value* SwizzledTransposed::load_of(const std::vector<Granule>& granules, std::size_t load, Value* unseen) const {
  const std::size_t pass =
      load % static_cast<std::size_t>(rows_of_block()) / static_cast<std::size_t>(transposed_rows_per_thread);
  return load_of_granule(granules[pass].rows, load, granules[pass].number, unseen);
}

// In granules: in each pass 64 threads transpose the 16 keys of one.
Values SwizzledTransposed::fetch_from_pages(Value* tile, Value* entries, Value* unseen) {
  Values loaded;
  if (looks_up_each_key()) {
    for (std::size_t i = 0; i < loads_.size(); ++i) {
      KeyPages::KeyPlace place = pages_->place_of_key(tile, entries, keys_[i], unseen);
      place.exists = is_in_row(place.exists, i);
      loaded.push_back(language::load_lanes(kernel_, pages_->row(slice_, place, loads_[i]), width_));
    }
    return loaded;
  }
  constexpr int granules_of_pass = tile_keys / KeyPages::granule_keys;
  const int waves_of_granule = pass_threads / granules_of_pass / kernel_.target().wave_size;
  Value* of_wave = waves_of_granule == 1
                       ? kernel_.wave()
                       : kernel_.ir().CreateLShr(kernel_.wave(), kernel_.constant(bits_below(waves_of_granule)));
  std::vector<Granule> granules;
  for (int pass = 0; pass < passes(); ++pass) {
    Value* number = kernel_.ir().CreateAdd(of_wave, kernel_.constant(pass * granules_of_pass / passes()));
    granules.push_back({pages_->granule(slice_, memory_pitch_, tile, entries, number), number});
    if (blocks_of_row_ != 1) continue;
    for (int i = 0; i < transposed_rows_per_thread; ++i) loaded.push_back(load_of(granules, loaded.size(), unseen));
  }
  while (loaded.size() < loads_.size()) loaded.push_back(load_of(granules, loaded.size(), unseen));
  return loaded;
}

// Two rows of dwords, two dims each → of one dim a dword, two keys.
Value* SwizzledTransposed::pair_of(const Values& loaded, int row, int dim) const {
  if (widens()) return pair_of_bytes(loaded, row, dim);
  llvm::IRBuilder<>& ir = kernel_.ir();
  constexpr std::uint32_t low_halves = 0x05040100;
  constexpr std::uint32_t high_halves = 0x07060302;
  const auto dword = static_cast<std::uint64_t>(dim / 2);
  Value* low = ir.CreateExtractElement(loaded[static_cast<std::size_t>(row)], dword);
  Value* high = ir.CreateExtractElement(loaded[static_cast<std::size_t>(row) + 1], dword);
  // v_perm_b32: selector bytes 0–3 name the second source, 4–7 the first.
  Value* selector = ir.getInt32(dim % 2 == 0 ? low_halves : high_halves);
  return ir.CreateIntrinsic(llvm::Intrinsic::amdgcn_perm, {}, {high, low, selector});
}

// The same of four dims a dword. As f32 two dims come at once: who asks for the second finds the first one's
// conversion, which the compiler makes once.
Value* SwizzledTransposed::pair_of_bytes(const Values& loaded, int row, int dim) const {
  const auto of_row = [&](int each) {
    Value* bytes = loaded[static_cast<std::size_t>(each)];
    if (bytes->getType()->isVectorTy())
      bytes = kernel_.ir().CreateExtractElement(bytes, static_cast<std::uint64_t>(dim / 4));
    return language::floats_of_bytes(kernel_, bytes, dim % 4 / 2, byte_element())[static_cast<std::size_t>(dim % 2)];
  };
  return language::pack_exact(kernel_, of_row(row), of_row(row + 1), matrix_.element());
}

// Four rows → for every dim a pair of dwords, four keys.
language::Strand SwizzledTransposed::write(const Values& in_flight) {
  llvm::IRBuilder<>& ir = kernel_.ir();
  const Values loaded = packed(in_flight);
  language::Strand strand;
  for (int each = 0; each < blocks_of_row_ * passes() * dims_per_thread_; ++each) {
    const int block = each / (passes() * dims_per_thread_);
    const int i = each % (passes() * dims_per_thread_);
    const int dim = i % dims_per_thread_;
    const int first_row = (block * rows_of_block()) + (i / dims_per_thread_ * transposed_rows_per_thread);
    // The first dim of a thread is a multiple of its dim count, and the first unit of its rows one of the passes that
    // come before: the low bits of the swizzle change by xor. Blocks of a row are whole turns of it apart.
    const int units = dim ^ (i / dims_per_thread_ * units_swizzled / passes());
    const int dim_of_row = (block * widest_block) + dim;
    // Two permutes, of every other dim conversions of four rows, and, but for the first, an address.
    strand.add(
        [=, this, &ir] {
          Value* const dwords[] = {pair_of(loaded, first_row, dim), pair_of(loaded, first_row + 2, dim)};
          Value* place = units == 0 ? write_ : ir.CreateXor(write_, kernel_.constant(units * unit_bytes));
          lds_.write(region_, language::gather_dwords(kernel_, dwords), place,
                     offset_ + dim_of_row * transposed_row_bytes());
        },
        widens() && dim % 2 == 0 ? 7 : 3);
  }
  return strand;
}

language::OperandA SwizzledTransposed::rows(int /*buffer*/, int /*row_block*/, int /*dim_block*/) {
  refuse("by rows");
  return {};
}

language::OperandA SwizzledTransposed::transposed(int /*buffer*/, int dim_block, int row_block) {
  // A block of dims adds its eighth to d / 8, of which the swizzle sees three bits, and here but even numbers.
  const int dims = language::wave_shape(kernel_).rows;
  const int of_block = dim_block * dims / units_swizzled % units_swizzled;
  const auto swizzled = static_cast<std::size_t>((2 * row_block ^ of_block) / 2);
  const int offset = offset_ + dim_block * dims * transposed_row_bytes();
  return matrix_.operand_a(lds_.read(region_, unit_bytes, read_[swizzled], offset), language::KOrder::accumulator_rows);
}

}  // namespace wavejit::attention
