// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention/emit/slice.h"

namespace wavejit::attention {

using language::Buffer;
using language::Kernel;
using language::Value;

namespace {

// Where the first of a head's rows stands.
Value* first_row_address(Kernel& kernel, const TensorFields& fields, Value* batch, Value* head, Value* first_row,
                         Value* row_stride) {
  llvm::IRBuilder<>& ir = kernel.ir();
  const auto wide = [&](Value* value) { return ir.CreateZExt(value, kernel.i64()); };
  Value* base = kernel.argument_i64(fields.pointer);
  base = ir.CreateAdd(base, ir.CreateMul(wide(batch), kernel.argument_i64(fields.batch_stride)));
  base = ir.CreateAdd(base, ir.CreateMul(wide(head), kernel.argument_i64(fields.head_stride)));
  return ir.CreateAdd(base, ir.CreateMul(wide(first_row), wide(row_stride)));
}

}  // namespace

Value* bytes_of_heads(Kernel& kernel, Value* group, Value* bytes, Value* head_stride) {
  llvm::IRBuilder<>& ir = kernel.ir();
  return ir.CreateAdd(bytes, ir.CreateMul(ir.CreateSub(group, kernel.constant(1)), head_stride));
}

Slice cache_of(Kernel& kernel, const TensorFields& fields, Value* head) {
  llvm::IRBuilder<>& ir = kernel.ir();
  Value* base = ir.CreateAdd(kernel.argument_i64(fields.pointer),
                             ir.CreateMul(ir.CreateZExt(head, kernel.i64()), kernel.argument_i64(fields.head_stride)));
  return {.buffer = Buffer(kernel, base, kernel.constant(0)),
          .row_stride = kernel.argument_i32(fields.row_stride),
          .base = base,
          .page_stride = kernel.argument_i64(fields.batch_stride)};
}

Slice pages_of_rows(Kernel& kernel, const TensorFields& fields, Value* batch, Value* head, Value* first_row) {
  llvm::IRBuilder<>& ir = kernel.ir();
  const auto wide = [&](Value* value) { return ir.CreateZExt(value, kernel.i64()); };
  Value* row_stride = kernel.argument_i32(fields.row_stride);
  Value* base = kernel.argument_i64(fields.pointer);
  base = ir.CreateAdd(base, ir.CreateMul(wide(batch), kernel.argument_i64(fields.batch_stride)));
  base = ir.CreateAdd(base, ir.CreateMul(wide(head), kernel.argument_i64(fields.head_stride)));
  base = ir.CreateAdd(base, ir.CreateMul(wide(first_row), wide(row_stride)));
  return {.buffer = Buffer(kernel, base, kernel.constant(0)),
          .row_stride = row_stride,
          .base = base,
          .page_stride = wide(row_stride)};
}

Slice slice_of(Kernel& kernel, const TensorFields& fields, Value* batch, Value* head, Value* first_row, Value* rows,
               int row_bytes, Value* group) {
  llvm::IRBuilder<>& ir = kernel.ir();
  Value* base = kernel.argument_i64(fields.pointer);
  const auto step = [&](Value* index, std::size_t stride) {
    return ir.CreateMul(ir.CreateZExt(index, kernel.i64()), kernel.argument_i64(stride));
  };
  base = ir.CreateAdd(base, step(batch, fields.batch_stride));
  base = ir.CreateAdd(base, step(head, fields.head_stride));
  Value* row_stride = kernel.argument_i32(fields.row_stride);
  base =
      ir.CreateAdd(base, ir.CreateMul(ir.CreateZExt(first_row, kernel.i64()), ir.CreateZExt(row_stride, kernel.i64())));
  Value* bytes = language::slice_bytes(kernel, rows, row_stride, row_bytes);
  if (group == nullptr) return {.buffer = Buffer(kernel, base, bytes), .row_stride = row_stride};
  Value* head_stride = kernel.argument_i32(fields.head_stride);
  return {.buffer = Buffer(kernel, base, bytes_of_heads(kernel, group, bytes, head_stride)),
          .row_stride = row_stride,
          .head_stride = head_stride};
}

Slice scattered_slice_of(Kernel& kernel, const TensorFields& fields, std::size_t dim_stride, Value* batch, Value* head,
                         Value* first_row, Value* rows, int dims, int element_bytes, Value* group) {
  llvm::IRBuilder<>& ir = kernel.ir();
  Value* row_stride = kernel.argument_i32(fields.row_stride);
  Value* base = first_row_address(kernel, fields, batch, head, first_row, row_stride);
  // Without rows a slice has no byte, and a uniform offset must not reach beyond it (codegen/language/buffer.h).
  Value* any = ir.CreateBinaryIntrinsic(llvm::Intrinsic::umin, rows, kernel.constant(1));
  Value* between_dims = ir.CreateMul(any, kernel.argument_i32(dim_stride));
  Value* bytes = ir.CreateAdd(language::slice_bytes(kernel, rows, row_stride, element_bytes),
                              ir.CreateMul(between_dims, kernel.constant(dims - 1)));
  Value* head_stride = group == nullptr ? nullptr : kernel.argument_i32(fields.head_stride);
  if (group != nullptr) bytes = bytes_of_heads(kernel, group, bytes, head_stride);
  return {.buffer = Buffer(kernel, base, bytes),
          .row_stride = row_stride,
          .head_stride = head_stride,
          .dim_stride = between_dims,
          .rows = rows,
          .element_bytes = element_bytes};
}

}  // namespace wavejit::attention
