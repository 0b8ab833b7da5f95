// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention/emit/scattered.h"

#include "codegen/language/convert.h"

namespace wavejit::attention {

using language::Kernel;
using language::Value;
using language::Values;

namespace {

constexpr int dword_bytes = 4;
constexpr int bits_of_byte = 8;

}  // namespace

Value* scattered_row(Kernel& kernel, const Slice& /*slice*/, Value* exists, Value* row_offset) {
  return kernel.ir().CreateSelect(exists, row_offset, kernel.ir().getInt32(beyond_scattered));
}

Value* scattered_query_row(Kernel& kernel, const QueryTile& tile, const Slice& slice, Value* row, Value* first_dim) {
  llvm::IRBuilder<>& ir = kernel.ir();
  Value* offset = ir.CreateAdd(ir.CreateMul(row, slice.row_stride), ir.CreateMul(first_dim, slice.dim_stride));
  if (tile.group == nullptr) return scattered_row(kernel, slice, ir.CreateICmpULT(row, slice.rows), offset);
  offset = ir.CreateAdd(offset, ir.CreateMul(head_of_lane(kernel, tile), slice.head_stride));
  return scattered_row(kernel, slice, tile.has_row, offset);
}

void load_scattered(const Slice& slice, Kernel& kernel, Value* lane_offset, Value* uniform_offset, int dim, int count,
                    Values& loaded) {
  llvm::IRBuilder<>& ir = kernel.ir();
  for (int each = dim; each < dim + count; ++each) {
    Value* offset = each == 0 ? uniform_offset
                              : ir.CreateAdd(uniform_offset, ir.CreateMul(slice.dim_stride, kernel.constant(each)));
    loaded.push_back(slice.buffer.load_element(slice.element_bytes, lane_offset, offset));
  }
}

Value* pack_scattered(Kernel& kernel, std::span<Value* const> elements, int element_bytes) {
  llvm::IRBuilder<>& ir = kernel.ir();
  const auto of_dword = static_cast<std::size_t>(dword_bytes / element_bytes);
  Values dwords;
  for (std::size_t first = 0; first < elements.size(); first += of_dword) {
    Value* dword = elements[first];
    for (std::size_t each = 1; each < of_dword; ++each)
      dword = ir.CreateOr(dword, ir.CreateShl(elements[first + each], each * static_cast<std::size_t>(element_bytes) *
                                                                          static_cast<std::size_t>(bits_of_byte)));
    dwords.push_back(dword);
  }
  return dwords.size() == 1 ? dwords.front() : language::gather_dwords(kernel, dwords);
}

void store_scattered(Kernel& kernel, const Slice& slice, Value* dwords, int element_bytes, Value* lane_offset,
                     int dim) {
  llvm::IRBuilder<>& ir = kernel.ir();
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(dwords->getType());
  const int count = (vector ? static_cast<int>(vector->getNumElements()) : 1) * dword_bytes / element_bytes;
  for (int each = 0; each < count; ++each) {
    const int byte = each * element_bytes;
    Value* dword = vector ? ir.CreateExtractElement(dwords, static_cast<std::uint64_t>(byte / dword_bytes)) : dwords;
    Value* element = ir.CreateLShr(dword, static_cast<std::uint64_t>(byte % dword_bytes) * bits_of_byte);
    slice.buffer.store_element(element_bytes, element, lane_offset,
                               ir.CreateMul(slice.dim_stride, kernel.constant(dim + each)));
  }
}

}  // namespace wavejit::attention
