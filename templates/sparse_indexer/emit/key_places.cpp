// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/sparse_indexer/emit/key_places.h"

#include "templates/attention/emit/integers.h"
#include "templates/attention/emit/key_pages.h"

namespace wavejit::sparse_indexer {
namespace {

using attention::maximum;
using attention::minimum;
using language::Buffer;
using language::Kernel;
using language::Value;

constexpr unsigned device_space = 1;
constexpr unsigned constant_space = 4;

}  // namespace

KeyPlaces::KeyPlaces(Kernel& kernel, const ScoresKernel& spec, Value* batch, const RowKeys& range)
    : kernel_(kernel), spec_(spec), range_(range) {
  if (spec_.paged) load_table(batch);
  const auto base_of = [&](Value* base, std::size_t batch_stride) {
    return spec_.paged ? base : moved(kernel_, base, batch, argument(batch_stride));
  };
  keys_ = base_of(argument(offsetof(ScoresArguments, keys)), offsetof(ScoresArguments, keys_batch_stride));
  // Keys without scales have those of one number in the code object.
  auto* one = new llvm::GlobalVariable(kernel_.module(), kernel_.f32(), true, llvm::GlobalValue::InternalLinkage,
                                       llvm::ConstantFP::get(ir().getFloatTy(), 1.0), "one", nullptr,
                                       llvm::GlobalValue::NotThreadLocal, constant_space);
  one->setAlignment(llvm::Align(4));
  Value* scales = argument(offsetof(ScoresArguments, key_scales));
  scales_ =
      ir().CreateSelect(ir().CreateIsNotNull(scales), base_of(scales, offsetof(ScoresArguments, scales_batch_stride)),
                        ir().CreatePtrToInt(one, kernel_.i64()));
}

void KeyPlaces::load_table(Value* batch) {
  granule_shift_ = kernel_.argument_i32(offsetof(ScoresArguments, granule_shift));
  granules_of_page_ = page_argument(offsetof(attention::PageArguments, granules_of_page));
  multiplier_ = page_argument(offsetof(attention::PageArguments, page_multiplier));
  last_page_ = ir().CreateSub(page_argument(offsetof(attention::PageArguments, pages)), kernel_.constant(1));
  Value* past = ir().CreateSub(ir().CreateShl(kernel_.constant(1), granule_shift_), kernel_.constant(1));
  Value* granules = ir().CreateLShr(ir().CreateAdd(range_.end, past), granule_shift_);
  const Buffer none(kernel_, kernel_.ir().getInt64(0), kernel_.constant(0));
  const attention::Slice no_slice = {.buffer = none, .row_stride = kernel_.constant(0)};
  const attention::KeyTensors tensors = {.k = no_slice,
                                         .v = no_slice,
                                         .batch = batch,
                                         .first_slot = kernel_.constant(0),
                                         .last_key = ir().CreateSub(range_.end, kernel_.constant(1)),
                                         .page_arguments = offsetof(ScoresArguments, pages)};
  const attention::TableRow row = attention::table_row_of(kernel_, tensors, granules, granules_of_page_, multiplier_);
  table_.emplace(kernel_, row.base, ir().CreateShl(row.live, 2));
}

Value* KeyPlaces::page_argument(std::size_t field) {
  return kernel_.argument_i32(offsetof(ScoresArguments, pages) + field);
}

Value* KeyPlaces::in_range(Value* key) {
  Value* last = ir().CreateSub(range_.end, kernel_.constant(1));
  return maximum(kernel_, minimum(kernel_, key, last), range_.begin);
}

// In which column of the table the page of a key stands.
Value* KeyPlaces::column_of(Value* key) {
  return attention::divided(kernel_, ir().CreateLShr(key, granule_shift_), multiplier_);
}

Value* KeyPlaces::entry_of(Value* key) {
  if (!spec_.paged) return nullptr;
  return table_->load(4, ir().CreateShl(column_of(key), 2), kernel_.constant(0));
}

KeyPlaces::Place KeyPlaces::place_of(Value* key, Value* entry) {
  Value* row = key;
  Place place = {.key = keys_, .scale = scales_};
  if (spec_.paged) {
    Value* page = ir().CreateBinaryIntrinsic(llvm::Intrinsic::umin, entry, last_page_);
    Value* before = ir().CreateShl(ir().CreateMul(column_of(key), granules_of_page_), granule_shift_);
    row = ir().CreateSub(key, before);
    place.key = moved(kernel_, place.key, page, argument(offsetof(ScoresArguments, keys_batch_stride)));
    place.scale = moved(kernel_, place.scale, page, argument(offsetof(ScoresArguments, scales_batch_stride)));
  }
  place.key = moved(kernel_, place.key, row, argument(offsetof(ScoresArguments, keys_row_stride)));
  place.scale = moved(kernel_, place.scale, row, argument(offsetof(ScoresArguments, scales_row_stride)));
  return place;
}

Value* KeyPlaces::load_scale(Value* address) {
  return ir().CreateAlignedLoad(kernel_.f32(), ir().CreateIntToPtr(address, ir().getPtrTy(device_space)),
                                llvm::Align(4));
}

}  // namespace wavejit::sparse_indexer
