// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention/emit/key_pages.h"

#include <llvm/IR/IntrinsicsAMDGPU.h>

#include <bit>

#include "codegen/language/convert.h"
#include "templates/attention/emit/integers.h"
#include "templates/attention/kernel/page_arguments.h"

namespace wavejit::attention {
namespace {

using language::Buffer;
using language::Kernel;
using language::Value;
using language::Values;

constexpr int entry_bytes = 4;
constexpr int granules_of_tile = 4;
constexpr int keys_of_tile = granules_of_tile * KeyPages::granule_keys;
constexpr int hidden = -1;  // in place of a slot

// Lanes that hold the entry of a tile's granule.
int lanes_of_granule(const Kernel& kernel) { return kernel.target().wave_size / granules_of_tile; }
Value* granule_of_lane(Kernel& kernel) {
  return kernel.ir().CreateLShr(kernel.lane(),
                                kernel.constant(std::countr_zero(static_cast<unsigned>(lanes_of_granule(kernel)))));
}

// Columns beyond the pages that live are outside the buffer, so that what stands there is never read.
Buffer table_of(Kernel& kernel, const TableRow& row) { return {kernel, row.base, kernel.ir().CreateShl(row.live, 2)}; }

// Granules (pages of one key: slots) up to the last key that lives.
Value* live_granules(Kernel& kernel, const KeyLayout& layout, const KeyTensors& tensors, Value* key_length) {
  llvm::IRBuilder<>& ir = kernel.ir();
  // A list may name any key.
  Value* slots = layout.listed ? tensors.named_keys : key_length;
  if (layout.first_keys) {
    Value* any = ir.CreateICmpSGT(key_length, kernel.constant(0));
    slots = ir.CreateSelect(any, ir.CreateAdd(tensors.first_slot, key_length), kernel.constant(0));
  }
  if (layout.single_keys) return slots;
  return granules_up_to(kernel, slots);
}

// Zeros in the code object.
Value* zeros_of(Kernel& kernel, int bytes) {
  constexpr unsigned constant_space = 4;
  constexpr int dword_bytes = 4;
  llvm::Type* type = kernel.vector(kernel.i32(), KeyPages::transfer_bytes / dword_bytes);
  if (bytes > KeyPages::transfer_bytes)
    type = llvm::ArrayType::get(kernel.i32(), static_cast<std::uint64_t>(bytes / dword_bytes));
  auto* zeros = new llvm::GlobalVariable(kernel.module(), type, true, llvm::GlobalValue::InternalLinkage,
                                         llvm::Constant::getNullValue(type), "zeros", nullptr,
                                         llvm::GlobalValue::NotThreadLocal, constant_space);
  zeros->setAlignment(llvm::Align(KeyPages::transfer_bytes));
  return kernel.ir().CreatePtrToInt(zeros, kernel.i64());
}

}  // namespace

Value* granules_up_to(Kernel& kernel, Value* keys) {
  return kernel.ir().CreateLShr(kernel.ir().CreateAdd(keys, kernel.constant(KeyPages::granule_keys - 1)),
                                kernel.constant(4));
}

// A row of the table, or (CSR) the sequence's part of the list.
TableRow table_row_of(Kernel& kernel, const KeyTensors& tensors, Value* granules, Value* granules_of_page,
                      Value* multiplier) {
  llvm::IRBuilder<>& ir = kernel.ir();
  Value* starts = kernel.argument_i64(page_field(tensors, offsetof(PageArguments, table_starts)));
  Value* is_list = ir.CreateIsNotNull(starts);
  Value* columns = kernel.argument_i32(page_field(tensors, offsetof(PageArguments, table_columns)));
  Value* batch_64 = ir.CreateZExt(tensors.batch, kernel.i64());
  // The kernel's own arguments are read in place of starts that are not there.
  Value* pair = ir.CreateSelect(is_list, ir.CreateAdd(starts, ir.CreateShl(batch_64, 2)), kernel.argument_address());
  const auto bounded = [&](Value* value, Value* least) {
    return minimum(kernel, maximum(kernel, value, least), columns);
  };
  Value* first = bounded(kernel.load_scalar(pair, kernel.i32()), kernel.constant(0));
  Value* end = bounded(kernel.load_scalar(ir.CreateAdd(pair, ir.getInt64(entry_bytes)), kernel.i32()), first);
  Value* of_row =
      ir.CreateMul(batch_64, kernel.argument_i64(page_field(tensors, offsetof(PageArguments, table_row_stride))));
  Value* of_list = ir.CreateShl(ir.CreateZExt(first, kernel.i64()), 2);
  Value* base = ir.CreateAdd(kernel.argument_i64(page_field(tensors, offsetof(PageArguments, table))),
                             ir.CreateSelect(is_list, of_list, of_row));
  Value* live = divided(kernel, ir.CreateAdd(granules, ir.CreateSub(granules_of_page, kernel.constant(1))), multiplier);
  Value* present = ir.CreateSelect(is_list, ir.CreateSub(end, first), columns);
  return {.base = base, .live = minimum(kernel, live, present)};
}

KeyPages::KeyPages(Kernel& kernel, const KeyLayout& layout, const KeyTensors& tensors, int zero_bytes)
    : kernel_(kernel),
      by_key_(layout.looks_up_each_key()),
      single_keys_(layout.single_keys),
      first_slot_(layout.first_keys ? tensors.first_slot : kernel.constant(0)),
      key_length_(kernel.ir().CreateAdd(tensors.last_key, kernel.constant(1))),
      granules_of_page_(kernel.argument_i32(page_field(tensors, offsetof(PageArguments, granules_of_page)))),
      multiplier_(kernel.argument_i32(page_field(tensors, offsetof(PageArguments, page_multiplier)))),
      last_page_(kernel.ir().CreateSub(kernel.argument_i32(page_field(tensors, offsetof(PageArguments, pages))),
                                       kernel.constant(1))),
      zero_bytes_(zero_bytes),
      zeros_(zeros_of(kernel, zero_bytes)),
      named_keys_(tensors.named_keys) {
  if (layout.listed) list_.emplace(kernel, tensors.list, kernel.ir().CreateShl(key_length_, 2));
  if (!layout.paged || layout.listed_slots) return;
  table_.emplace(table_of(kernel, table_row_of(kernel, tensors, live_granules(kernel, layout, tensors, key_length_),
                                               granules_of_page_, multiplier_)));
}

std::optional<KeyPages> pages_of(Kernel& kernel, const KeyLayout& layout, const KeyTensors& tensors, int zero_bytes) {
  if (!layout.listed && (!layout.paged || layout.looks_up_for_a_wave())) return std::nullopt;
  return KeyPages(kernel, layout, tensors, zero_bytes);
}

KeyPages::Place KeyPages::place_of(Value* tile, Value* number) const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  Value* granule = ir.CreateAdd(ir.CreateMul(tile, kernel_.constant(granules_of_tile)), number);
  Value* page = divided(kernel_, granule, multiplier_);
  return {.page = page, .granule = ir.CreateSub(granule, ir.CreateMul(page, granules_of_page_))};
}

Value* KeyPages::entries(Value* tile) const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  if (list_) return resolved(listed(tile));
  if (by_key_) {
    Values own;
    for (int first = 0; first < keys_of_tile; first += kernel_.target().wave_size) {
      Value* key = first == 0 ? kernel_.lane() : ir.CreateAdd(kernel_.lane(), kernel_.constant(first));
      Value* column = column_of(slot_of(tile, key));
      own.push_back(table_->load(entry_bytes, ir.CreateShl(column, kernel_.constant(2)), kernel_.constant(0)));
    }
    return own.size() == 1 ? own.front() : language::gather_dwords(kernel_, own);
  }
  const Place place = place_of(tile, granule_of_lane(kernel_));
  return table_->load(entry_bytes, ir.CreateShl(place.page, kernel_.constant(2)), kernel_.constant(0));
}

Value* KeyPages::listed(Value* tile) const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  Value* first = ir.CreateMul(tile, kernel_.constant(keys_of_tile));
  return list_->load(entry_bytes, ir.CreateShl(ir.CreateAdd(first, kernel_.lane()), kernel_.constant(2)),
                     kernel_.constant(0));
}

Value* KeyPages::looked_up(Value* listed) const {
  if (!table_) return listed;
  Value* column = column_of(listed);
  return table_->load(entry_bytes, kernel_.ir().CreateShl(column, kernel_.constant(2)), kernel_.constant(0));
}

Value* KeyPages::resolved(Value* listed) const { return resolved(listed, looked_up(listed)); }

Value* KeyPages::resolved(Value* listed, Value* looked_up) const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  // −1 and what is below it are large as unsigned numbers.
  Value* is_named = ir.CreateICmpULT(listed, named_keys_);
  Value* slot = listed;
  if (table_) {
    slot = ir.CreateBinaryIntrinsic(llvm::Intrinsic::umin, looked_up, last_page_);
    if (!single_keys_) {
      Value* keys_of_page = ir.CreateMul(granules_of_page_, kernel_.constant(granule_keys));
      slot = ir.CreateAdd(listed, ir.CreateMul(ir.CreateSub(slot, column_of(listed)), keys_of_page));
    }
  }
  return ir.CreateSelect(is_named, slot, kernel_.constant(hidden));
}

Value* KeyPages::named(Value* resolved) const {
  Value* is_named = kernel_.ir().CreateICmpNE(resolved, kernel_.constant(hidden));
  return kernel_.ir().CreateIntrinsic(llvm::Intrinsic::amdgcn_ballot, {kernel_.i64()}, {is_named});
}

KeyPages::KeyPlace KeyPages::place_in_list(Value* entry, Value* exists) const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  KeyPlace place = {
      .page = entry, .row = nullptr, .exists = ir.CreateAnd(exists, ir.CreateICmpNE(entry, kernel_.constant(hidden)))};
  if (single_keys_) return place;
  place.page = column_of(entry);
  Value* before = ir.CreateMul(ir.CreateMul(place.page, granules_of_page_), kernel_.constant(granule_keys));
  place.row = ir.CreateSub(entry, before);
  return place;
}

// A page of a head spans less than 4 GiB (call/paging.cpp checks that), the cache need not.
Value* KeyPages::address_of(const Slice& slice, Value* entry, Value* granule) const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  Value* page = ir.CreateBinaryIntrinsic(llvm::Intrinsic::umin, entry, last_page_);
  Value* in_page = ir.CreateMul(granule, ir.CreateMul(slice.row_stride, kernel_.constant(granule_keys)));
  Value* base = ir.CreateAdd(slice.base, ir.CreateMul(ir.CreateZExt(page, kernel_.i64()), slice.page_stride));
  return ir.CreateAdd(base, ir.CreateZExt(in_page, kernel_.i64()));
}

Buffer KeyPages::granule(const Slice& slice, int row_bytes, Value* tile, Value* entries, Value* number) const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  Value* keys = ir.CreateMul(number, kernel_.constant(granule_keys));
  const int lanes = lanes_of_granule(kernel_);
  Value* lane = lanes == granule_keys ? keys : ir.CreateMul(number, kernel_.constant(lanes));
  Value* entry = ir.CreateIntrinsic(llvm::Intrinsic::amdgcn_readlane, {kernel_.i32()}, {entries, lane});
  Value* first = ir.CreateAdd(ir.CreateMul(tile, kernel_.constant(keys_of_tile)), keys);
  // Clamped as scalar instructions are: min(max(x, 0), 16) becomes v_med3, a saturating difference v_sub with clamp.
  // The descriptor then is one of lanes, and each fetch with it a loop over lanes.
  Value* left = ir.CreateSub(maximum(kernel_, key_length_, first), first);
  Value* live = ir.CreateBinaryIntrinsic(llvm::Intrinsic::umin, left, kernel_.constant(granule_keys));
  return {kernel_, address_of(slice, entry, place_of(tile, number).granule),
          language::slice_bytes(kernel_, live, slice.row_stride, row_bytes)};
}

Value* KeyPages::living_granule(Value* tile, Value* number) const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  Value* first = ir.CreateMul(tile, kernel_.constant(keys_of_tile));
  Value* last_key = ir.CreateSub(ir.CreateSub(key_length_, kernel_.constant(1)), first);
  return ir.CreateBinaryIntrinsic(llvm::Intrinsic::umin, number, ir.CreateLShr(last_key, kernel_.constant(4)));
}

Value* KeyPages::lane_rows(const Slice& slice, Value* tile, Value* entries) const {
  return address_of(slice, entries, place_of(tile, granule_of_lane(kernel_)).granule);
}

Value* KeyPages::is_live(Value* tile, Value* in_tile, Value* unseen, Value* exists) const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  Value* left = ir.CreateSub(key_length_, ir.CreateMul(tile, kernel_.constant(keys_of_tile)));
  if (unseen == nullptr) {
    Value* lives = ir.CreateICmpSLT(in_tile, left);
    return exists == nullptr ? lives : ir.CreateAnd(lives, exists);
  }
  // One comparison: keys in front of the first that counts are large as unsigned numbers.
  Value* count = maximum(kernel_, ir.CreateSub(left, unseen), kernel_.constant(0));
  if (exists != nullptr) count = ir.CreateSelect(exists, count, kernel_.constant(0));
  return ir.CreateICmpULT(ir.CreateSub(in_tile, unseen), count);
}

Value* KeyPages::if_live(Value* is_live, Value* address) const {
  return kernel_.ir().CreateSelect(is_live, address, zeros_);
}

Value* KeyPages::slot_of(Value* tile, Value* in_tile) const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  Value* first = ir.CreateAdd(first_slot_, ir.CreateMul(tile, kernel_.constant(keys_of_tile)));
  return ir.CreateAdd(first, in_tile);
}

Value* KeyPages::column_of(Value* slot) const {
  return single_keys_ ? slot : divided(kernel_, kernel_.ir().CreateLShr(slot, kernel_.constant(4)), multiplier_);
}

// The instruction counts lanes modulo those of a wave: of several entries a lane each is asked for as if it were the
// only one.
Value* KeyPages::entry_of_key(Value* entries, Value* in_tile) const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  Value* lane = ir.CreateShl(in_tile, kernel_.constant(2));
  const auto of_lane = [&](Value* own) {
    return ir.CreateIntrinsic(llvm::Intrinsic::amdgcn_ds_bpermute, {}, {lane, own});
  };
  const int lanes = kernel_.target().wave_size;
  if (lanes == keys_of_tile) return of_lane(entries);
  Value* entry = of_lane(ir.CreateExtractElement(entries, std::uint64_t{0}));
  for (int each = 1; each < keys_of_tile / lanes; ++each) {
    Value* behind = ir.CreateICmpUGE(in_tile, kernel_.constant(each * lanes));
    entry = ir.CreateSelect(behind, of_lane(ir.CreateExtractElement(entries, static_cast<std::uint64_t>(each))), entry);
  }
  return entry;
}

KeyPages::KeyPlace KeyPages::place_of_key(Value* tile, Value* entries, Value* in_tile, Value* unseen) const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  Value* entry = entry_of_key(entries, in_tile);
  if (list_) return place_in_list(entry, is_live(tile, in_tile));
  KeyPlace place = {.page = ir.CreateBinaryIntrinsic(llvm::Intrinsic::umin, entry, last_page_),
                    .row = nullptr,
                    .exists = is_live(tile, in_tile, unseen)};
  if (single_keys_) return place;
  Value* slot = slot_of(tile, in_tile);
  Value* before = ir.CreateMul(ir.CreateMul(column_of(slot), granules_of_page_), kernel_.constant(granule_keys));
  place.row = ir.CreateSub(slot, before);
  return place;
}

KeyPages::KeyPlace KeyPages::place_of_any_key(Value* tile, Value* entries, Value* in_tile) const {
  if (by_key_) return place_of_key(tile, entries, in_tile);
  llvm::IRBuilder<>& ir = kernel_.ir();
  // Any of the lanes that have the granule's entry: the first.
  Value* first = ir.CreateAnd(in_tile, kernel_.constant(-granule_keys));
  const int keys_of_lane = granule_keys / lanes_of_granule(kernel_);
  Value* lane = keys_of_lane == 1 ? first : ir.CreateUDiv(first, kernel_.constant(keys_of_lane));
  Value* entry =
      ir.CreateIntrinsic(llvm::Intrinsic::amdgcn_ds_bpermute, {}, {ir.CreateShl(lane, kernel_.constant(2)), entries});
  const Place place = place_of(tile, ir.CreateLShr(in_tile, kernel_.constant(4)));
  Value* in_page =
      ir.CreateAdd(ir.CreateMul(place.granule, kernel_.constant(granule_keys)), ir.CreateSub(in_tile, first));
  return {.page = ir.CreateBinaryIntrinsic(llvm::Intrinsic::umin, entry, last_page_),
          .row = in_page,
          .exists = is_live(tile, in_tile)};
}

Value* KeyPages::row(const Slice& slice, const KeyPlace& place, Value* column) const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  Value* address = ir.CreateAdd(slice.base, ir.CreateMul(ir.CreateZExt(place.page, kernel_.i64()), slice.page_stride));
  Value* in_page = place.row == nullptr ? column : ir.CreateAdd(ir.CreateMul(place.row, slice.row_stride), column);
  return if_live(place.exists, ir.CreateAdd(address, ir.CreateZExt(in_page, kernel_.i64())));
}

}  // namespace wavejit::attention
