// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention/emit/visible_keys.h"

#include "templates/attention/emit/integers.h"
#include "templates/attention/kernel/mask_kinds.h"

namespace wavejit::attention {

using language::Kernel;
using language::Value;

namespace {

// The first key of the local chunk in which a position lies.
Value* first_of_chunk(Kernel& kernel, Value* keys, Value* multiplier, Value* position) {
  llvm::IRBuilder<>& ir = kernel.ir();
  // local_chunk_shift, of chunks of two keys and more.
  Value* last = ir.CreateSub(keys, kernel.constant(1));
  Value* zeros = ir.CreateIntrinsic(llvm::Intrinsic::ctlz, {kernel.i32()}, {last, ir.getTrue()});
  Value* shift = ir.CreateSub(kernel.constant(dword_bits - 1), zeros);
  Value* inside = maximum(kernel, position, kernel.constant(0));
  Value* chunk = ir.CreateLShr(high_half(kernel, inside, multiplier), shift);
  return ir.CreateMul(chunk, keys);
}

}  // namespace

KindOfMask kind_of_mask(Kernel& kernel, Mask mask, const WindowFields& window) {
  if (!has_kind(mask)) return {};
  return {.mask = mask, .first = kernel.argument_i32(window.left), .second = kernel.argument_i32(window.right)};
}

Value* first_key_at(Kernel& kernel, const KindOfMask& kind, Value* position) {
  if (kind.mask == Mask::chunked) return first_of_chunk(kernel, kind.first, kind.second, position);
  return position;
}
// A kind without a first and a last key here would see its diagonal alone.
static_assert(mask_kinds.size() == 1, "first_key_at and last_key_at say what the kinds of masks.def show");
Value* last_key_at(Kernel& /*kernel*/, const KindOfMask& /*kind*/, Value* position) { return position; }
Value* end_key_at(Kernel& kernel, const KindOfMask& kind, Value* behind) {
  if (!shows_later_keys(kind.mask)) return behind;
  llvm::IRBuilder<>& ir = kernel.ir();
  Value* last = last_key_at(kernel, kind, ir.CreateSub(behind, kernel.constant(1)));
  return ir.CreateAdd(last, kernel.constant(1));
}

Value* keys_beyond_diagonal(Kernel& kernel, std::size_t flags_field, Value* batch) {
  llvm::IRBuilder<>& ir = kernel.ir();
  // Scalar loads have whole dwords. The one in which the byte stands lies in its page, and in any allocation.
  constexpr int dword = sizeof(std::uint32_t);
  constexpr int byte_bits = 8;
  Value* address = ir.CreateAdd(kernel.argument_i64(flags_field), ir.CreateZExt(batch, kernel.i64()));
  Value* bytes = kernel.load_scalar(ir.CreateAnd(address, ir.getInt64(~std::uint64_t{dword - 1})), kernel.i32());
  Value* shift = ir.CreateMul(ir.CreateAnd(ir.CreateTrunc(address, kernel.i32()), kernel.constant(dword - 1)),
                              kernel.constant(byte_bits));
  Value* flag = ir.CreateAnd(ir.CreateLShr(bytes, shift), kernel.constant((1 << byte_bits) - 1));
  return ir.CreateSelect(ir.CreateIsNotNull(flag), kernel.constant(0), kernel.constant(unlimited_window));
}

Value* first_visible_key(Kernel& kernel, const WindowFields& window, Value* diagonal) {
  Value* begin = kernel.ir().CreateSub(diagonal, kernel.argument_i32(window.left));
  return maximum(kernel, begin, kernel.constant(0));
}

KeyRange visible_keys(Kernel& kernel, const WindowFields& window, Value* diagonal, Value* keys) {
  llvm::IRBuilder<>& ir = kernel.ir();
  Value* begin = ir.CreateSub(diagonal, kernel.argument_i32(window.left));
  Value* end = ir.CreateAdd(ir.CreateAdd(diagonal, kernel.argument_i32(window.right)), kernel.constant(1));
  return {.begin = maximum(kernel, begin, kernel.constant(0)), .end = minimum(kernel, end, keys)};
}

KeyLimits key_limits(Kernel& kernel, Mask mask, bool wants_diagonal, const DiagonalFields& diagonal,
                     const WindowFields& window, const Sequence& sequence, Value* beyond) {
  llvm::IRBuilder<>& ir = kernel.ir();
  KeyLimits limits = {};
  if (mask != Mask::none || wants_diagonal) limits.diagonal = diagonal_offset(kernel, diagonal, sequence);
  if (mask != Mask::none) limits.to_limit = limits.diagonal;
  if (beyond != nullptr) limits.to_limit = ir.CreateAdd(limits.diagonal, beyond);
  if (mask == Mask::window) {
    limits.to_limit = ir.CreateAdd(limits.diagonal, kernel.argument_i32(window.right));
    limits.to_begin = ir.CreateSub(limits.diagonal, kernel.argument_i32(window.left));
  }
  if (has_kind(mask)) {
    limits.to_begin = limits.diagonal;
    limits.kind = kind_of_mask(kernel, mask, window);
  }
  return limits;
}

// Row r sees the keys r + d − left … r + d + right. So it sees none of first_key … last_key that is not beyond
// r + d + right, nor one before r + d − left.
RowRange visible_rows(Kernel& kernel, const KeyLimits& limits, const Sequence& sequence, Value* first_key,
                      Value* last_key) {
  llvm::IRBuilder<>& ir = kernel.ir();
  last_key = minimum(kernel, last_key, ir.CreateSub(sequence.key_length, kernel.constant(1)));
  RowRange rows = {.begin = kernel.constant(0), .end = sequence.query_length};
  if (limits.to_limit != nullptr)
    rows.begin = maximum(kernel, ir.CreateSub(first_key, limits.to_limit), kernel.constant(0));
  if (limits.to_begin != nullptr) {
    Value* last_row = ir.CreateSub(last_key, limits.to_begin);
    rows.end = minimum(kernel, ir.CreateAdd(last_row, kernel.constant(1)), rows.end);
  }
  Value* any = ir.CreateICmpSLE(first_key, last_key);
  rows.end = ir.CreateSelect(any, rows.end, rows.begin);
  return rows;
}

}  // namespace wavejit::attention
