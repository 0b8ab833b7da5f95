// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention/emit/tile_pages.h"

#include "codegen/language/synchronize.h"
#include "templates/attention/emit/integers.h"
#include "templates/attention/emit/key_pages.h"
#include "templates/attention/emit/unseen_keys.h"
#include "templates/attention/kernel/canon.h"
#include "templates/attention/kernel/page_arguments.h"

namespace wavejit::attention {
namespace {

using language::Buffer;
using language::Kernel;
using language::Value;

constexpr int whole_tile_keys = attention::tile_keys;
constexpr int whole_tile_granules = whole_tile_keys / KeyPages::granule_keys;

}  // namespace

TilePages::TilePages(Kernel& kernel, const KeyLayout& layout, const KeyTensors& tensors, int waves)
    : kernel_(kernel),
      by_wave_(layout.wave_granules),
      keys_of_wave_(whole_tile_keys / waves),
      key_length_(kernel.ir().CreateAdd(tensors.last_key, kernel.constant(1))),
      granules_of_page_(kernel.argument_i32(page_field(tensors, offsetof(PageArguments, granules_of_page)))),
      multiplier_(kernel.argument_i32(page_field(tensors, offsetof(PageArguments, page_multiplier)))),
      last_page_(kernel.ir().CreateSub(kernel.argument_i32(page_field(tensors, offsetof(PageArguments, pages))),
                                       kernel.constant(1))),
      any_key_(kernel.ir().CreateBinaryIntrinsic(llvm::Intrinsic::umin, key_length_, kernel.constant(1))) {
  llvm::IRBuilder<>& ir = kernel.ir();
  const TableRow row =
      table_row_of(kernel, tensors, granules_up_to(kernel, key_length_), granules_of_page_, multiplier_);
  // The kernel's own arguments are read in place of a table without an entry: any page will do where no key lives.
  // Opaque: beside a subtraction of 1 the backend would do the comparison with 0 by it, on the vector unit.
  Value* live = language::opaque(kernel, row.live);
  table_ = ir.CreateSelect(ir.CreateICmpEQ(live, kernel.constant(0)), kernel.argument_address(), row.base);
  last_entry_ = maximum(kernel, ir.CreateSub(row.live, kernel.constant(1)), kernel.constant(0));
}

std::optional<TilePages> tile_pages_of(Kernel& kernel, const KeyLayout& layout, const KeyTensors& tensors, int waves) {
  if (!layout.looks_up_for_a_wave()) return std::nullopt;
  if (layout.wave_granules && KeyPages::granule_keys % (whole_tile_keys / waves) != 0)
    kernel.refuse("waves that move rows of more than one granule of 16 keys each");
  return TilePages(kernel, layout, tensors, waves);
}

Value* TilePages::granule_of_wave() const {
  const int waves_of_granule = KeyPages::granule_keys / keys_of_wave_;
  return waves_of_granule == 1 ? kernel_.wave()
                               : kernel_.ir().CreateUDiv(kernel_.wave(), kernel_.constant(waves_of_granule));
}

Value* TilePages::granule_of_tile(Value* tile) const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  Value* first = ir.CreateMul(tile, kernel_.constant(whole_tile_granules));
  return by_wave_ ? ir.CreateAdd(first, granule_of_wave()) : first;
}

Value* TilePages::unseen_of_rows(Value* unseen) const {
  if (!by_wave_ || unseen == nullptr) return unseen;
  Value* before = kernel_.ir().CreateMul(granule_of_wave(), kernel_.constant(KeyPages::granule_keys));
  return unseen_behind(kernel_, unseen, before);
}

Value* TilePages::keys_left(Value* tile) const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  // Not below 0 (a second bound would make it a median, which only the vector unit has): no tile that is walked begins
  // past the length.
  if (!by_wave_) return ir.CreateSub(key_length_, ir.CreateMul(tile, kernel_.constant(whole_tile_keys)));
  // A granule may.
  Value* first = ir.CreateMul(granule_of_tile(tile), kernel_.constant(KeyPages::granule_keys));
  return ir.CreateSub(maximum(kernel_, key_length_, first), first);
}

TilePages::Place TilePages::look_up(Value* tile, Way way) const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  Value* granule = granule_of_tile(tile);
  // Pages of whole tiles hold several granules.
  Value* page = by_wave_ ? divided(kernel_, granule, multiplier_) : high_half(kernel_, granule, multiplier_);
  Value* column = ir.CreateBinaryIntrinsic(llvm::Intrinsic::umin, page, last_entry_);
  Value* offset = ir.CreateShl(column, 2);
  Value* left = keys_left(tile);
  constexpr int entry_bytes = 4;
  Value* entry = way == Way::vector
                     ? Buffer(kernel_, table_, ir.CreateAdd(offset, kernel_.constant(entry_bytes)))
                           .load(entry_bytes, kernel_.constant(0), offset)
                     : kernel_.load_scalar(ir.CreateAdd(table_, ir.CreateZExt(offset, kernel_.i64())), kernel_.i32());
  return {.entry = entry,
          .granule = ir.CreateSub(granule, ir.CreateMul(page, granules_of_page_)),
          .live = ir.CreateBinaryIntrinsic(llvm::Intrinsic::umin, left,
                                           kernel_.constant(by_wave_ ? KeyPages::granule_keys : whole_tile_keys))};
}

// A page of a head spans less than 4 GiB (call/paging.cpp checks that), the cache need not.
Buffer TilePages::rows(const Slice& slice, int row_bytes, const Place& place) const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  Value* granule_bytes = ir.CreateMul(slice.row_stride, kernel_.constant(KeyPages::granule_keys));
  Value* page = ir.CreateBinaryIntrinsic(llvm::Intrinsic::umin, place.entry, last_page_);
  Value* base = ir.CreateAdd(slice.base, ir.CreateMul(ir.CreateZExt(page, kernel_.i64()), slice.page_stride));
  base = ir.CreateAdd(base, ir.CreateZExt(ir.CreateMul(place.granule, granule_bytes), kernel_.i64()));
  if (by_wave_) return {kernel_, base, language::slice_bytes(kernel_, place.live, slice.row_stride, row_bytes)};
  // As slice_bytes; every tile that is walked has a live key, or the sequence has none.
  Value* behind_last = ir.CreateMul(any_key_, ir.CreateSub(slice.row_stride, kernel_.constant(row_bytes)));
  return {kernel_, base, ir.CreateSub(ir.CreateMul(place.live, slice.row_stride), behind_last)};
}

}  // namespace wavejit::attention
