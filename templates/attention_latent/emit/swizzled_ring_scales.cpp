// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Scales of rows, which come to the lanes that multiply by them.
#include <llvm/IR/IntrinsicsAMDGPU.h>

#include "codegen/language/convert.h"
#include "codegen/language/lane_place.h"
#include "templates/attention_latent/emit/swizzled_ring.h"

namespace wavejit::attention_latent {
namespace {

using attention::KeyPages;
using attention::TilePages;
using language::Value;
using language::Values;

constexpr int scale_bytes = 4;
constexpr int row_scale_bytes = 16;  // four in fp32
constexpr int scales_of_row = 4;

}  // namespace

// The scales of all that the wave's loads bring: a load is two rows of four times eight lanes. Lane 8 i + 4 h + b has
// that of load i, row h, columns 128 b … + 127. Behind the last tile they are those of the last one: what is there is
// 0.
attention::SwizzledStream::Load SwizzledRing::scattered_scale_load(Value* tile, const TilePages::Place& in_page,
                                                                   Value* entries) const {
  return [=, this] {
    llvm::IRBuilder<>& ir = kernel_.ir();
    const auto constant = [&](int value) { return kernel_.constant(value); };
    Value* lane = kernel_.lane();
    const auto bits = [&](int from, int count) {
      return ir.CreateAnd(ir.CreateLShr(lane, constant(from)), constant((1 << count) - 1));
    };
    Value* in_tile =
        ir.CreateAdd(ir.CreateShl(bits(3, 3), 3), ir.CreateAdd(ir.CreateShl(kernel_.wave(), 1), bits(2, 1)));
    Value* column = ir.CreateAdd(ir.CreateShl(bits(0, 2), 2), constant(scales_at_));
    Value* scale = nullptr;
    if (pages_) {
      const KeyPages::KeyPlace key = pages_->place_of_any_key(tile, entries, in_tile);
      scale = language::load_lanes(kernel_, pages_->row(latent_slice_, key, column), scale_bytes);
    } else {
      Value* offset = ir.CreateAdd(ir.CreateMul(in_tile, latent_slice_.row_stride), column);
      scale = tile_pages_
                  ? tile_pages_->rows(latent_slice_, latent_bytes_, in_page).load(scale_bytes, offset, constant(0))
                  : latent_slice_.buffer.load(
                        scale_bytes, offset,
                        ir.CreateMul(ir.CreateMul(tile, constant(attention::tile_keys)), latent_slice_.row_stride));
    }
    return scale;
  };
}

// A thread's loads are all of one row, whose four scales these are.
attention::SwizzledStream::Load SwizzledRing::scale_load(Value* tile, const TilePages::Place& in_page,
                                                         Value* entries) const {
  if (!latent_.has_row_a_thread()) return scattered_scale_load(tile, in_page, entries);
  return [=, this]() -> Value* {
    llvm::IRBuilder<>& ir = kernel_.ir();
    Value* in_tile = latent_.row_of_thread();
    Value* column = kernel_.constant(scales_at_);
    if (pages_) {
      const KeyPages::KeyPlace key = pages_->place_of_any_key(tile, entries, in_tile);
      return language::load_lanes(kernel_, pages_->row(latent_slice_, key, column), row_scale_bytes);
    }
    Value* offset = ir.CreateAdd(ir.CreateMul(in_tile, latent_slice_.row_stride), column);
    if (tile_pages_)
      return tile_pages_->rows(latent_slice_, latent_bytes_, in_page)
          .load(row_scale_bytes, offset, kernel_.constant(0));
    return latent_slice_.buffer.load(
        row_scale_bytes, offset,
        ir.CreateMul(ir.CreateMul(tile, kernel_.constant(attention::tile_keys)), latent_slice_.row_stride));
  };
}

// The same of exponents. They stand apart, where the
// rope of other rows does.
attention::SwizzledStream::Load SwizzledRing::exponent_load(Value* tile, const TilePages::Place& in_page,
                                                            Value* entries) const {
  return [=, this]() -> Value* {
    llvm::IRBuilder<>& ir = kernel_.ir();
    Value* in_tile = latent_.row_of_thread();
    Value* column = kernel_.constant(0);
    if (pages_) {
      const KeyPages::KeyPlace key = pages_->place_of_any_key(tile, entries, in_tile);
      return language::load_lanes(kernel_, pages_->row(rope_slice_, key, column), exponent_row_bytes);
    }
    Value* offset = ir.CreateMul(in_tile, rope_slice_.row_stride);
    if (tile_pages_)
      return tile_pages_->rows(rope_slice_, exponent_row_bytes, in_page).load(exponent_row_bytes, offset, column);
    return rope_slice_.buffer.load(
        exponent_row_bytes, offset,
        ir.CreateMul(ir.CreateMul(tile, kernel_.constant(attention::tile_keys)), rope_slice_.row_stride));
  };
}

// Scales of long runs are permuted to the lanes that multiply.
language::Strand SwizzledRing::write_with_scattered_scales(const Values& loaded) {
  llvm::IRBuilder<>& ir = kernel_.ir();
  const auto constant = [&](int value) { return kernel_.constant(value); };
  // So that no product has a NaN whose rounding is a number.
  Value* scales = language::with_short_nan(kernel_, ir.CreateBitCast(loaded.front(), kernel_.f32()));
  scales = ir.CreateBitCast(scales, kernel_.i32());
  Value* lane = kernel_.lane();
  // Per lane: which lane has the scale of what load 0 brings to it, as an address.
  Value* half = language::group_of_lane(kernel_, lane);
  Value* block = ir.CreateAnd(ir.CreateLShr(lane, constant(3)), constant(3));
  Value* first = ir.CreateShl(ir.CreateAdd(ir.CreateShl(half, 2), block), 2);
  return latent_.write_scaled({loaded.begin() + 1, loaded.end()}, [=, this](int load) {
    constexpr int lanes_of_load = 8;
    Value* from = kernel_.ir().CreateAdd(first, kernel_.constant(load * lanes_of_load * scale_bytes));
    Value* scale = kernel_.ir().CreateIntrinsic(llvm::Intrinsic::amdgcn_ds_bpermute, {}, {from, scales});
    return kernel_.ir().CreateBitCast(scale, kernel_.f32());
  });
}

language::Strand SwizzledRing::write_latent(const Values& loaded) {
  if (!has_row_scales_) return latent_.write(loaded);
  if (has_exponents_) return latent_.write_raised({loaded.begin() + 1, loaded.end()}, loaded.front());
  if (!latent_.has_row_a_thread()) return write_with_scattered_scales(loaded);
  const int loads_of_scale = latent_.loads() / scales_of_row;
  return latent_.write_scaled({loaded.begin() + 1, loaded.end()}, [=, this](int load) {
    Value* scale = kernel_.ir().CreateExtractElement(loaded.front(), static_cast<std::uint64_t>(load / loads_of_scale));
    // So that no product has a NaN whose rounding is a number.
    return language::with_short_nan(kernel_, kernel_.ir().CreateBitCast(scale, kernel_.f32()));
  });
}

}  // namespace wavejit::attention_latent
