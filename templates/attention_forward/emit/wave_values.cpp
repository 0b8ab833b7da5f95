// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/emit/wave_values.h"

#include <llvm/IR/IntrinsicsAMDGPU.h>

#include <array>
#include <bit>

#include "codegen/language/buffer.h"
#include "codegen/language/convert.h"
#include "codegen/language/lane_place.h"

namespace wavejit::attention_forward {

using attention::KeyPages;
using attention::Slice;
using attention::tile_keys;
using language::Kernel;
using language::Value;
using language::Values;

WaveValues::WaveValues(Kernel& kernel, language::Lds& lds, const language::MatrixUnit& matrix, const Slice& slice,
                       const Place& place, Value* lane_group, const std::optional<KeyPages>& pages)
    : kernel_(kernel), lds_(lds), matrix_(matrix), slice_(slice), place_(place), pages_(pages) {
  llvm::IRBuilder<>& ir = kernel.ir();
  const auto constant = [&](int value) { return kernel.constant(value); };
  const int units = place.dims / unit_dims;
  const int unit_bits = std::countr_zero(static_cast<unsigned>(units));
  constexpr int granule_lanes = KeyPages::granule_keys;  // of 64 lanes: four granules of 16 keys
  const int quads = granule_lanes / units;               // of a granule's four keys, at once
  const int passes = KeyPages::granule_keys / (rows_of_lane * quads);
  Value* lane = kernel.lane();
  Value* unit = ir.CreateAnd(lane, constant(units - 1));
  Value* granule = ir.CreateUDiv(lane, constant(granule_lanes));
  // With two quads at once they are 0 and 2, then 1 and 3: the two halves of one unit.
  Value* quad = ir.CreateAnd(ir.CreateLShr(lane, constant(unit_bits)), constant(quads - 1));
  if (passes == 2) quad = ir.CreateShl(quad, 1);

  const bool by_key = pages_ && pages_->looks_up_each_key();
  Value* column =
      ir.CreateAdd(ir.CreateMul(place.first_dim, constant(element_bytes)), ir.CreateMul(unit, constant(unit_bytes)));
  column_ = column;
  // The swizzle of the lane's first dim; the others' differ from it by their number.
  Value* swizzle = ir.CreateMul(unit, constant(units_of_dim / units));
  Value* first_dim = ir.CreateMul(unit, constant(unit_dims * dim_bytes));
  for (int pass = 0; pass < passes; ++pass) {
    Value* of_pass = ir.CreateAdd(quad, constant(pass));
    for (int i = 0; i < rows_of_lane; ++i) {
      Value* of_granule = ir.CreateAdd(ir.CreateMul(of_pass, constant(rows_of_lane)), constant(i));
      Value* row = ir.CreateAdd(ir.CreateMul(granule, constant(KeyPages::granule_keys)), of_granule);
      rows_.push_back(row);
      Value* from = pages_ ? of_granule : row;
      offsets_.push_back(by_key ? column : ir.CreateAdd(ir.CreateMul(from, slice_.row_stride), column));
    }
    // Quad q of granule s stands in unit 2s + q % 2, in its upper half for q ≥ 2.
    Value* of_image = ir.CreateAdd(ir.CreateShl(granule, 1), ir.CreateAnd(of_pass, constant(1)));
    Value* half = ir.CreateLShr(of_pass, constant(1));
    Value* at = ir.CreateAdd(ir.CreateMul(ir.CreateXor(of_image, swizzle), constant(unit_bytes)),
                             ir.CreateMul(half, constant(unit_bytes / 2)));
    writes_.push_back(ir.CreateAdd(ir.CreateAdd(place.image, first_dim), at));
  }

  // Out: dim lane % 32 of a block, unit 2 · row block + lane group.
  Value* dim = language::row_of_lane(kernel, lane);
  Value* group_of_dim = ir.CreateMul(ir.CreateUDiv(dim, constant(unit_dims)), constant(units_of_dim / units));
  Value* of_dim = ir.CreateXor(ir.CreateAnd(dim, constant(units_of_dim - 1)), group_of_dim);
  Value* begin = ir.CreateAdd(place.image, ir.CreateMul(dim, constant(dim_bytes)));
  for (int bits = 0; bits < units_of_dim; bits += 2) {
    Value* at = ir.CreateXor(ir.CreateXor(lane_group, of_dim), constant(bits));
    reads_.push_back(ir.CreateAdd(begin, ir.CreateMul(at, constant(unit_bytes))));
  }
}

std::vector<WaveValues::Load> WaveValues::loads_of(Value* tile, Value* entries, Value* exists, Value* unseen) const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  std::vector<Load> all;
  if (!pages_) {
    // Far outside the descriptor where there is no such tile.
    constexpr std::uint32_t far = 0x80000000;
    Value* outside = ir.CreateSelect(exists, kernel_.constant(0), ir.getInt32(far));
    Value* offset = ir.CreateMul(ir.CreateMul(tile, kernel_.constant(tile_keys)), slice_.row_stride);
    // One operation a load either way.
    Value* least = unseen;
    if (unseen != nullptr) least = ir.CreateAdd(column_, ir.CreateOr(ir.CreateMul(unseen, slice_.row_stride), outside));
    for (Value* of_lane : offsets_)
      all.emplace_back([=, this] {
        Value* at = least == nullptr ? kernel_.ir().CreateOr(of_lane, outside)
                                     : kernel_.ir().CreateBinaryIntrinsic(llvm::Intrinsic::umax, of_lane, least);
        return slice_.buffer.load(unit_bytes, at, offset);
      });
    return all;
  }
  Value* start = pages_->looks_up_each_key() ? nullptr : pages_->lane_rows(slice_, tile, entries);
  for (std::size_t i = 0; i < loads(); ++i)
    all.emplace_back([=, this] {
      llvm::IRBuilder<>& here = kernel_.ir();
      if (start == nullptr) {
        KeyPages::KeyPlace key = pages_->place_of_key(tile, entries, rows_[i], unseen);
        key.exists = here.CreateAnd(key.exists, exists);
        return language::load_lanes(kernel_, pages_->row(slice_, key, offsets_[i]), unit_bytes);
      }
      Value* is_live = pages_->is_live(tile, rows_[i], unseen, exists);
      Value* address = here.CreateAdd(start, here.CreateZExt(offsets_[i], kernel_.i64()));
      return language::load_lanes(kernel_, pages_->if_live(is_live, address), unit_bytes);
    });
  return all;
}

void WaveValues::write(std::span<Value* const> loaded) const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  // v_perm_b32: selector bytes 0–3 name the second source, 4–7 the first.
  constexpr std::uint32_t low_halves = 0x05040100;
  constexpr std::uint32_t high_halves = 0x07060302;
  for (std::size_t pass = 0; pass < writes_.size(); ++pass)
    for (int dim = 0; dim < unit_dims; ++dim) {
      const auto pair = [&](std::size_t row) -> Value* {
        const auto of_row = [&](std::size_t each) {
          return ir.CreateExtractElement(loaded[(pass * rows_of_lane) + each], static_cast<std::uint64_t>(dim / 2));
        };
        return ir.CreateIntrinsic(llvm::Intrinsic::amdgcn_perm, {},
                                  {of_row(row + 1), of_row(row), ir.getInt32(dim % 2 == 0 ? low_halves : high_halves)});
      };
      Value* at = dim == 0 ? writes_[pass] : ir.CreateXor(writes_[pass], kernel_.constant(dim * unit_bytes));
      lds_.write(place_.region, language::gather_dwords(kernel_, std::array{pair(0), pair(2)}), at, dim * dim_bytes);
    }
}

language::OperandA WaveValues::transposed(int dim_block, int row_block) const {
  // 32 dims further the swizzle of a group of eight has another bit 2, where there are 64.
  const int units = 2 * row_block ^ (4 * (dim_block % 2));
  const int offset = dim_block * language::wave_shape(kernel_).rows * dim_bytes;
  return matrix_.operand_a(lds_.read(place_.region, unit_bytes, reads_[static_cast<std::size_t>(units / 2)], offset),
                           language::KOrder::accumulator_rows);
}

}  // namespace wavejit::attention_forward
