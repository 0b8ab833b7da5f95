// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention/emit/vectorised_pages.h"

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
      key_length_(kernel.ir().CreateAdd(tensors.last_key, kernel.constant(1))) {
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

Values VectorisedPages::value_lines(Value* tile, Value* entries) const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  Value* line_stride = ir.CreateMul(v_dim_stride_, kernel_.constant(unit_elements));
  Value* unit_stride = ir.CreateMul(v_.row_stride, kernel_.constant(unit_elements));
  Value* offset = ir.CreateAdd(ir.CreateMul(half_, unit_stride), ir.CreateMul(dim_, v_dim_stride_));
  offset = ir.CreateAdd(offset, ir.CreateMul(kernel_.wave(), line_stride));
  Value* first = ir.CreateAdd(pages_.lane_rows(v_, tile, entries), ir.CreateZExt(offset, kernel_.i64()));
  Value* first_key = ir.CreateAdd(ir.CreateMul(granule_, kernel_.constant(KeyPages::granule_keys)),
                                  ir.CreateMul(half_, kernel_.constant(unit_elements)));
  return lines(pages_.is_live(tile, first_key), first, line_stride, v_lines());
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

Values VectorisedPages::cut(Value* tile, const Values& units) const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  constexpr int keys_of_dword = 2;
  Value* before = ir.CreateAdd(ir.CreateMul(granule_, kernel_.constant(KeyPages::granule_keys)),
                               ir.CreateMul(half_, kernel_.constant(unit_elements)));
  Value* live = ir.CreateSub(live_keys(tile), before);
  Value* mask = llvm::PoisonValue::get(kernel_.vector(kernel_.i32(), unit_elements / keys_of_dword));
  for (int dword = 0; dword < unit_elements / keys_of_dword; ++dword) {
    const auto lives = [&](int key) { return ir.CreateICmpSGT(live, kernel_.constant((keys_of_dword * dword) + key)); };
    Value* of_dword = ir.CreateSelect(lives(0), ir.CreateSelect(lives(1), ir.getInt32(0xFFFFFFFF), ir.getInt32(0xFFFF)),
                                      kernel_.constant(0));
    mask = ir.CreateInsertElement(mask, of_dword, static_cast<std::uint64_t>(dword));
  }
  Values cut;
  for (Value* unit : units) cut.push_back(ir.CreateAnd(unit, mask));
  return cut;
}

}  // namespace wavejit::attention
