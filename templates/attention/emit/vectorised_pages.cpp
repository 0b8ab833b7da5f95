// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention/emit/vectorised_pages.h"

#include "templates/attention/emit/unseen_keys.h"
#include "templates/attention/kernel/page_arguments.h"

namespace wavejit::attention {

using language::Kernel;
using language::Value;
using language::Values;

VectorisedPages::VectorisedPages(Kernel& kernel, const TileShape& shape, const KeyTensors& tensors)
    : kernel_(kernel),
      pages_(kernel, shape.layout, tensors),
      k_(tensors.k),
      v_(tensors.v),
      waves_(shape.waves),
      k_lines_(shape.dims_k / unit_elements),
      v_lines_(shape.dims_v / unit_elements),
      key_length_(kernel.ir().CreateAdd(tensors.last_key, kernel.constant(1))),
      first_seen_(tensors.first_seen) {
  llvm::IRBuilder<>& ir = kernel.ir();
  const auto constant = [&](int value) { return kernel.constant(value); };
  Value* in_granule = ir.CreateAnd(kernel.lane(), constant(KeyPages::granule_keys - 1));
  granule_ = ir.CreateLShr(kernel.lane(), constant(4));
  dim_ = ir.CreateLShr(in_granule, constant(1));
  half_ = ir.CreateXor(ir.CreateAnd(in_granule, constant(1)), ir.CreateLShr(in_granule, constant(3)));

  Value* granules = kernel.argument_i32(page_field(tensors, offsetof(PageArguments, granules_of_page)));
  k_.row_stride = constant(unit_bytes);
  k_line_stride_ = ir.CreateMul(granules, constant(KeyPages::granule_keys * unit_bytes));
  // A page's keys of one dim side by side, or 8 of them, and then the next dim's.
  Value* by_dims = ir.CreateICmpEQ(v_.row_stride, constant(bytes_of_element));
  v_dim_stride_ = ir.CreateSelect(by_dims, ir.CreateMul(granules, constant(KeyPages::granule_keys * bytes_of_element)),
                                  constant(unit_bytes));
}

Values VectorisedPages::lines(Value* is_live, Value* first, Value* step, int count) const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  // The zeros are one unit: whoever reads them stays there.
  Value* apart = ir.CreateSelect(is_live, ir.CreateMul(step, kernel_.constant(waves_)), kernel_.constant(0));
  Values addresses = {pages_.if_live(is_live, first)};
  while (static_cast<int>(addresses.size()) < count)
    addresses.push_back(ir.CreateAdd(addresses.back(), ir.CreateZExt(apart, kernel_.i64())));
  return addresses;
}

Values VectorisedPages::key_lines(Value* tile, Value* entries) const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  Value* in_granule = ir.CreateAnd(kernel_.lane(), kernel_.constant(KeyPages::granule_keys - 1));
  Value* offset = ir.CreateAdd(ir.CreateMul(in_granule, kernel_.constant(unit_bytes)),
                               ir.CreateMul(kernel_.wave(), k_line_stride_));
  Value* first = ir.CreateAdd(pages_.lane_rows(k_, tile, entries), ir.CreateZExt(offset, kernel_.i64()));
  return lines(pages_.is_live(tile, kernel_.lane()), first, k_line_stride_, k_lines());
}

Value* VectorisedPages::unseen_of(Value* tile) const { return unseen_keys(kernel_, first_seen_, tile); }

Values VectorisedPages::value_lines(Value* tile, Value* entries, Value* unseen) const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  Value* line_stride = ir.CreateMul(v_dim_stride_, kernel_.constant(unit_elements));
  Value* unit_stride = ir.CreateMul(v_.row_stride, kernel_.constant(unit_elements));
  Value* offset = ir.CreateAdd(ir.CreateMul(half_, unit_stride), ir.CreateMul(dim_, v_dim_stride_));
  offset = ir.CreateAdd(offset, ir.CreateMul(kernel_.wave(), line_stride));
  Value* first = ir.CreateAdd(pages_.lane_rows(v_, tile, entries), ir.CreateZExt(offset, kernel_.i64()));
  Value* first_key = first_key_of_unit();
  // A unit that has a key that is seen.
  Value* in_units = unseen;
  if (unseen != nullptr) in_units = ir.CreateAnd(unseen, kernel_.constant(-unit_elements));
  return lines(pages_.is_live(tile, first_key, in_units), first, line_stride, v_lines());
}

Value* VectorisedPages::first_key_of_unit() const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  return ir.CreateAdd(ir.CreateMul(granule_, kernel_.constant(KeyPages::granule_keys)),
                      ir.CreateMul(half_, kernel_.constant(unit_elements)));
}

Value* VectorisedPages::live_keys(Value* tile) const {
  return kernel_.ir().CreateSub(key_length_, kernel_.ir().CreateMul(tile, kernel_.constant(keys_of_tile)));
}

Value* VectorisedPages::ends_inside_unit(Value* tile) const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  Value* live = live_keys(tile);
  Value* in_unit = ir.CreateAnd(live, kernel_.constant(unit_elements - 1));
  return ir.CreateAnd(ir.CreateICmpSLT(live, kernel_.constant(keys_of_tile)),
                      ir.CreateICmpNE(in_unit, kernel_.constant(0)));
}

Value* VectorisedPages::begins_inside_unit(Value* unseen) const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  return ir.CreateICmpNE(ir.CreateAnd(unseen, kernel_.constant(unit_elements - 1)), kernel_.constant(0));
}

Values VectorisedPages::without(Side side, Value* edge, const Values& units) const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  constexpr int keys_of_dword = 2;
  const bool from = side == Side::from;
  // A dword has two keys, of which the other is not kept without this one.
  const int outer = from ? 0 : 1;
  Value* alone = ir.getInt32(from ? 0xFFFF : 0xFFFF0000);
  Value* mask = llvm::PoisonValue::get(kernel_.vector(kernel_.i32(), unit_elements / keys_of_dword));
  for (int dword = 0; dword < unit_elements / keys_of_dword; ++dword) {
    const auto keeps = [&](int key) {
      return ir.CreateICmp(from ? llvm::CmpInst::ICMP_SGT : llvm::CmpInst::ICMP_SLE, edge,
                           kernel_.constant((keys_of_dword * dword) + key));
    };
    Value* keeps_outer = keeps(outer);
    Value* of_dword = ir.CreateSelect(keeps_outer, ir.CreateSelect(keeps(1 - outer), ir.getInt32(0xFFFFFFFF), alone),
                                      kernel_.constant(0));
    mask = ir.CreateInsertElement(mask, of_dword, static_cast<std::uint64_t>(dword));
  }
  Values left;
  for (Value* unit : units) left.push_back(ir.CreateAnd(unit, mask));
  return left;
}

Values VectorisedPages::cut(Value* tile, const Values& units) const {
  Value* before = first_key_of_unit();
  return without(Side::from, kernel_.ir().CreateSub(live_keys(tile), before), units);
}

Values VectorisedPages::cut_unseen(Value* unseen, const Values& units) const {
  Value* before = first_key_of_unit();
  return without(Side::before, kernel_.ir().CreateSub(unseen, before), units);
}

}  // namespace wavejit::attention
