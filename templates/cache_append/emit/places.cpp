// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/cache_append/emit/places.h"

#include <cstddef>

#include "codegen/language/convert.h"

namespace wavejit::cache_append {
namespace {

using language::Buffer;
using language::Kernel;
using language::Value;
using language::Values;

constexpr int vector_bytes = 16;
constexpr int element_bytes = 2;
constexpr int half_bits = 16;
// Keys of a group (Side::group_stride), as a shift.
constexpr int group_shift = 3;

Value* wide(Kernel& kernel, Value* value) { return kernel.ir().CreateZExt(value, kernel.i64()); }

// address + index · stride, of a 32-bit index.
Value* advanced(Kernel& kernel, Value* address, Value* index, Value* stride) {
  return kernel.ir().CreateAdd(address, kernel.ir().CreateMul(wide(kernel, index), stride));
}

Value* key_address(Kernel& kernel, const SideFields& side, Value* page, Value* key) {
  llvm::IRBuilder<>& ir = kernel.ir();
  Value* address = advanced(kernel, side.target, page, side.page_stride);
  address = advanced(kernel, address, ir.CreateLShr(key, group_shift), side.group_stride);
  return advanced(kernel, address, ir.CreateAnd(key, kernel.constant((1 << group_shift) - 1)), side.key_stride);
}

Value* bytes_where(Kernel& kernel, Value* condition, Value* bytes) {
  return kernel.ir().CreateSelect(condition, bytes, kernel.constant(0));
}

Value* element_offset(Kernel& kernel, Value* offset, Value* dim_stride, Value* live, int element) {
  llvm::IRBuilder<>& ir = kernel.ir();
  Value* own = ir.CreateAdd(offset, ir.CreateMul(dim_stride, kernel.constant(element)));
  return ir.CreateSelect(live, own, ir.getInt32(nowhere));
}

}  // namespace

SideFields load_side(Kernel& kernel, int side) {
  // Where they are needed, and not at the kernel's beginning: all three sides at once do not fit the scalar registers.
  llvm::IRBuilder<>& ir = kernel.ir();
  const std::size_t at = offsetof(Arguments, sides) + (static_cast<std::size_t>(side) * sizeof(Side));
  constexpr int group_dwords = 8;
  Values dwords;
  for (std::size_t byte = 0; byte < sizeof(Side); byte += group_dwords * sizeof(std::uint32_t)) {
    Value* group = kernel.load_scalar(ir.CreateAdd(kernel.argument_address(), ir.getInt64(at + byte)),
                                      kernel.vector(kernel.i32(), group_dwords));
    for (std::uint64_t dword = 0; dword < group_dwords; ++dword)
      dwords.push_back(ir.CreateExtractElement(group, dword));
  }
  const auto i32 = [&](std::size_t field) { return dwords[field / sizeof(std::uint32_t)]; };
  const auto i64 = [&](std::size_t field) {
    constexpr int dword_bits = 32;
    Value* upper = ir.CreateShl(wide(kernel, i32(field + sizeof(std::uint32_t))), dword_bits);
    return ir.CreateOr(wide(kernel, i32(field)), upper);
  };
  return {.source = i64(offsetof(Side, source)),
          .source_batch_stride = i64(offsetof(Side, source_batch_stride)),
          .source_token_stride = i64(offsetof(Side, source_token_stride)),
          .target = i64(offsetof(Side, target)),
          .page_stride = i64(offsetof(Side, page_stride)),
          .group_stride = i64(offsetof(Side, group_stride)),
          .key_stride = i64(offsetof(Side, key_stride)),
          .source_head_stride = i32(offsetof(Side, source_head_stride)),
          .source_dim_stride = i32(offsetof(Side, source_dim_stride)),
          .source_row_bytes = i32(offsetof(Side, source_row_bytes)),
          .target_head_stride = i32(offsetof(Side, target_head_stride)),
          .target_piece_stride = i32(offsetof(Side, target_piece_stride)),
          .target_row_bytes = i32(offsetof(Side, target_row_bytes)),
          .heads = i32(offsetof(Side, heads)),
          .pieces = i32(offsetof(Side, pieces)),
          .lane_shift = i32(offsetof(Side, lane_shift)),
          .heads_of_part = i32(offsetof(Side, heads_of_part))};
}

Token token_of(Kernel& kernel, int index) {
  llvm::IRBuilder<>& ir = kernel.ir();
  Value* waves = kernel.constant(kernel.threads() / kernel.target().wave_size);
  Value* wave = ir.CreateAdd(ir.CreateMul(kernel.workgroup_x(), waves), kernel.wave());
  Value* number = ir.CreateAdd(ir.CreateMul(wave, kernel.constant(tokens_of_wave)), kernel.constant(index));
  Value* inside = ir.CreateICmpULT(number, kernel.argument_i32(offsetof(Arguments, tokens)));
  return {.inside = inside, .number = ir.CreateSelect(inside, number, kernel.constant(0))};
}

Number number_of(Kernel& kernel, const Token& token, std::size_t pointer, std::size_t shift, Value* limit) {
  llvm::IRBuilder<>& ir = kernel.ir();
  Value* batch = wide(kernel, kernel.workgroup_y());
  Value* index = advanced(kernel, wide(kernel, token.number), kernel.argument_i32(offsetof(Arguments, tokens)), batch);
  Value* steps = kernel.argument_i32(shift);
  Value* address = ir.CreateAdd(kernel.argument_i64(pointer), ir.CreateShl(index, wide(kernel, steps)));
  constexpr int shift_of_64_bits = 3;
  Value* is_wide = ir.CreateICmpEQ(steps, kernel.constant(shift_of_64_bits));
  // The upper half of 64 bits, which is 0 in numbers that count; for 32 bits the number once more.
  Value* upper = ir.CreateAdd(address, ir.CreateSelect(is_wide, ir.getInt64(sizeof(std::uint32_t)), ir.getInt64(0)));
  Value* value = kernel.load_scalar(address, kernel.i32());
  Value* check = kernel.load_scalar(upper, kernel.i32());
  Value* fits = ir.CreateICmpEQ(check, ir.CreateSelect(is_wide, kernel.constant(0), value));
  return {.value = value, .valid = ir.CreateAnd(fits, ir.CreateICmpULT(value, limit))};
}

Place place_of(Kernel& kernel, const Number& slot) {
  llvm::IRBuilder<>& ir = kernel.ir();
  Value* product =
      ir.CreateMul(wide(kernel, slot.value), wide(kernel, kernel.argument_i32(offsetof(Arguments, page_multiplier))));
  Value* page = ir.CreateTrunc(
      ir.CreateLShr(product, wide(kernel, kernel.argument_i32(offsetof(Arguments, page_shift)))), kernel.i32());
  Value* key = ir.CreateSub(slot.value, ir.CreateMul(page, kernel.argument_i32(offsetof(Arguments, page_size))));
  return {.page = page, .key = key};
}

Buffer row_of_slot(Kernel& kernel, const SideFields& side, const Number& slot, const Place& place, Value* inside) {
  return {kernel, key_address(kernel, side, place.page, place.key),
          bytes_where(kernel, kernel.ir().CreateAnd(slot.valid, inside), side.target_row_bytes)};
}

Buffer row_of_token(Kernel& kernel, const SideFields& side, const Token& token) {
  return {kernel, key_address(kernel, side, kernel.workgroup_y(), token.number),
          bytes_where(kernel, token.inside, side.target_row_bytes)};
}

Buffer source_row(Kernel& kernel, const SideFields& side, const Token& token) {
  Value* address = advanced(kernel, side.source, kernel.workgroup_y(), side.source_batch_stride);
  return {kernel, advanced(kernel, address, token.number, side.source_token_stride),
          bytes_where(kernel, token.inside, side.source_row_bytes)};
}

Lane lane_of(Kernel& kernel, const SideFields& side, Value* unit) {
  llvm::IRBuilder<>& ir = kernel.ir();
  Value* first_head = ir.CreateMul(unit, side.heads_of_part);
  Value* head = ir.CreateAdd(first_head, ir.CreateLShr(kernel.lane(), side.lane_shift));
  Value* lanes = ir.CreateShl(kernel.constant(1), side.lane_shift);
  Value* piece = ir.CreateAnd(kernel.lane(), ir.CreateSub(lanes, kernel.constant(1)));
  Value* live = ir.CreateAnd(ir.CreateICmpULT(head, side.heads), ir.CreateICmpULT(piece, side.pieces));
  return {.head = head, .piece = piece, .live = live};
}

Values load_piece(Kernel& kernel, const Buffer& row, Access access, Value* offset, Value* dim_stride, Value* live) {
  llvm::IRBuilder<>& ir = kernel.ir();
  Values dwords;
  if (access == Access::vectors) {
    Value* loaded = row.load(vector_bytes, ir.CreateSelect(live, offset, ir.getInt32(nowhere)), kernel.constant(0));
    for (std::uint64_t dword = 0; dword < dims_of_lane / 2; ++dword)
      dwords.push_back(ir.CreateExtractElement(loaded, dword));
    return dwords;
  }
  Values elements;
  for (int element = 0; element < dims_of_lane; ++element)
    elements.push_back(
        row.load_element(element_bytes, element_offset(kernel, offset, dim_stride, live, element), kernel.constant(0)));
  for (std::size_t element = 0; element < elements.size(); element += 2)
    dwords.push_back(ir.CreateOr(elements[element], ir.CreateShl(elements[element + 1], half_bits)));
  return dwords;
}

void store_piece(Kernel& kernel, const Buffer& row, Access access, const Values& dwords, Value* offset,
                 Value* dim_stride, Value* live) {
  llvm::IRBuilder<>& ir = kernel.ir();
  if (access == Access::vectors) {
    row.store(language::gather_dwords(kernel, dwords), ir.CreateSelect(live, offset, ir.getInt32(nowhere)),
              kernel.constant(0));
    return;
  }
  const int of_dword = dims_of_lane / static_cast<int>(dwords.size());
  constexpr int dword_bytes = 4;
  constexpr int byte_bits = 8;
  const int bytes = dword_bytes / of_dword;
  for (int element = 0; element < dims_of_lane; ++element) {
    Value* dword = dwords[static_cast<std::size_t>(element / of_dword)];
    const int in_dword = element % of_dword;
    Value* own = in_dword == 0 ? dword : ir.CreateLShr(dword, kernel.constant(in_dword * bytes * byte_bits));
    row.store_element(bytes, own, element_offset(kernel, offset, dim_stride, live, element), kernel.constant(0));
  }
}

}  // namespace wavejit::cache_append
