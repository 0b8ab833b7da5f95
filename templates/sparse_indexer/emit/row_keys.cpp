// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/sparse_indexer/emit/row_keys.h"

#include "codegen/language/control.h"
#include "templates/attention/emit/integers.h"
#include "templates/attention/emit/visible_keys.h"

namespace wavejit::sparse_indexer {
namespace {

using attention::maximum;
using attention::minimum;
using language::Kernel;
using language::Value;
using language::Values;

// Element `index` of an int32 array, or `otherwise` where there is no array.
Value* element_or(Kernel& kernel, std::size_t field, Value* index, Value* otherwise) {
  llvm::IRBuilder<>& ir = kernel.ir();
  Value* array = kernel.argument_i64(field);
  return language::if_uniform(kernel, ir.CreateIsNotNull(array), language::Likelihood::even, {otherwise},
                              [&](const Values&) {
                                Value* offset = ir.CreateShl(ir.CreateZExt(index, kernel.i64()), 2);
                                return Values{kernel.load_scalar(ir.CreateAdd(array, offset), kernel.i32())};
                              })[0];
}

}  // namespace

Value* moved(Kernel& kernel, Value* base, Value* index, Value* stride) {
  llvm::IRBuilder<>& ir = kernel.ir();
  return ir.CreateAdd(base, ir.CreateMul(ir.CreateZExt(index, kernel.i64()), stride));
}

RowKeys keys_of_row(Kernel& kernel, std::size_t rows, Value* batch, Value* row) {
  llvm::IRBuilder<>& ir = kernel.ir();
  Value* zero = kernel.constant(0);
  Value* most = kernel.argument_i32(rows + offsetof(RowArguments, seen.key_length));
  Value* queries = kernel.argument_i32(rows + offsetof(RowArguments, seen.query_length));
  Value* length = element_or(kernel, rows + offsetof(RowArguments, key_lengths), batch, most);
  Value* told = maximum(kernel, length, zero);
  Value* keys = minimum(kernel, told, most);
  // Diagonals stand where the caller's length puts them, also beyond the keys that there are. Cut so that no sum
  // overflows: unsigned, since beside the maximum a signed minimum would make it a median, which only the vector unit
  // has.
  constexpr int most_told = 1 << 29;
  told = ir.CreateBinaryIntrinsic(llvm::Intrinsic::umin, told, kernel.constant(most_told));
  Value* diagonal =
      ir.CreateAdd(ir.CreateAdd(row, kernel.argument_i32(rows + offsetof(RowArguments, seen.causal_offset))),
                   ir.CreateAnd(ir.CreateSub(told, queries),
                                kernel.argument_i32(rows + offsetof(RowArguments, seen.bottom_right_mask))));
  const attention::WindowFields window = {.left = rows + offsetof(RowArguments, seen.window_left),
                                          .right = rows + offsetof(RowArguments, seen.window_right)};
  const attention::KeyRange seen = attention::visible_keys(kernel, window, diagonal, keys);
  Value* number = ir.CreateAdd(ir.CreateMul(batch, queries), row);
  Value* first = element_or(kernel, rows + offsetof(RowArguments, key_begins), number, zero);
  Value* behind = element_or(kernel, rows + offsetof(RowArguments, key_ends), number, keys);
  Value* end = maximum(kernel, minimum(kernel, minimum(kernel, seen.end, behind), keys), zero);
  Value* begin = minimum(kernel, maximum(kernel, maximum(kernel, seen.begin, first), zero), end);
  return {.begin = begin, .end = end};
}

}  // namespace wavejit::sparse_indexer
