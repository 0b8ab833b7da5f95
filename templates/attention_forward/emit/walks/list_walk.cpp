// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/emit/walks/list_walk.h"

#include <bit>

#include "templates/attention/emit/integers.h"
#include "templates/attention/emit/modifiers.h"
#include "templates/attention/kernel/marked_tile.h"
#include "templates/attention_forward/kernel/walks/block_lists/walks.h"
#include "templates/attention_forward/kernel/walks/list_arguments.h"
#include "templates/attention_forward/kernel/walks/mask_lists/arguments.h"

namespace wavejit::attention_forward {

using attention::Stop;
using attention_block_lists::Header;
using language::Kernel;
using language::Value;

namespace {

// The head's units among those of all sequences and heads of the lists.
Value* first_unit(Kernel& kernel, Value* batch, Value* query_head) {
  llvm::IRBuilder<>& ir = kernel.ir();
  const auto number = [&](std::size_t field) { return kernel.argument_i32(list_field(field)); };
  Value* head = divided(kernel, query_head, number(offsetof(ListArguments, head_multiplier)));
  Value* heads = ir.CreateAdd(ir.CreateMul(batch, number(offsetof(ListArguments, heads))), head);
  return ir.CreateMul(heads, number(offsetof(ListArguments, units)));
}

}  // namespace

Value* tile_in_order(Kernel& kernel, const ForwardKernel& spec, Value* batch, Value* query_head, Value* y) {
  llvm::IRBuilder<>& ir = kernel.ir();
  // A unit has a tile or several.
  const int tile_bits = std::countr_zero(static_cast<unsigned>(spec.tile_queries));
  Value* shift =
      ir.CreateSub(kernel.argument_i32(list_field(offsetof(ListArguments, unit_shift))), kernel.constant(tile_bits));
  Value* place = ir.CreateLShr(y, shift);
  Value* number = ir.CreateZExt(ir.CreateAdd(first_unit(kernel, batch, query_head), place), kernel.i64());
  Value* address = ir.CreateAdd(kernel.argument_i64(list_field(offsetof(ListArguments, order))),
                                ir.CreateMul(number, ir.getInt64(sizeof(std::uint32_t))));
  Value* unit = kernel.load_scalar(address, kernel.i32());
  return ir.CreateAdd(ir.CreateShl(unit, shift), ir.CreateSub(y, ir.CreateShl(place, shift)));
}

WalkPlace walk_of(Kernel& kernel, Value* batch, Value* query_head, Value* first_row, Value* first_row_of_wave) {
  llvm::IRBuilder<>& ir = kernel.ir();
  const auto number = [&](std::size_t field) { return kernel.argument_i32(list_field(field)); };
  Value* shift = number(offsetof(ListArguments, unit_shift));
  Value* unit = ir.CreateAdd(first_unit(kernel, batch, query_head), ir.CreateLShr(first_row, shift));
  Value* header = ir.CreateAdd(kernel.argument_i64(list_field(offsetof(ListArguments, headers))),
                               ir.CreateMul(ir.CreateZExt(unit, kernel.i64()), ir.getInt64(sizeof(Header))));
  const auto told = [&](std::size_t field) {
    return kernel.load_scalar(ir.CreateAdd(header, ir.getInt64(field)), kernel.i32());
  };
  Value* start = ir.CreateZExt(told(offsetof(Header, start)), kernel.i64());
  Value* rows_before = ir.CreateSub(first_row_of_wave, ir.CreateShl(ir.CreateLShr(first_row, shift), shift));
  return {.entries =
              ir.CreateAdd(kernel.argument_i64(list_field(offsetof(ListArguments, entries))), ir.CreateShl(start, 2)),
          .count = told(offsetof(Header, count)),
          .several_chunks = ir.CreateICmpNE(told(offsetof(Header, several)), kernel.constant(0)),
          .empty = ir.CreateICmpNE(told(offsetof(Header, empty)), kernel.constant(0)),
          .block = ir.CreateUDiv(rows_before, kernel.constant(block_rows))};
}

ListWalk::ListWalk(Kernel& kernel, const WalkPlace& place)
    : TileWalk(kernel, kernel.constant(0), place.count), place_(place) {}

// Places behind the last have its entry: those who look ahead may ask for them.
Value* ListWalk::read(Value* place) const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  // In 32 bits, which a scalar load adds to its address by itself.
  Value* offset = ir.CreateShl(at_most_last(place), kernel_.constant(2), "", true);
  return kernel_.load_scalar(ir.CreateAdd(place_.entries, ir.CreateZExt(offset, kernel_.i64())), kernel_.i32());
}

Value* ListWalk::entry(const Stop& stop) const { return stop.entry != nullptr ? stop.entry : read(stop.place); }

Value* ListWalk::tile_at(const Stop& stop) const {
  return kernel_.ir().CreateAnd(entry(stop), kernel_.ir().getInt32(marked_tile_number));
}

Value* ListWalk::begins_chunk(const Stop& stop) const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  return ir.CreateICmpNE(ir.CreateAnd(entry(stop), kernel_.constant(1 << begins_bit)), kernel_.constant(0));
}

Value* ListWalk::exists_and_begins_chunk(const Stop& stop) const {
  return kernel_.ir().CreateAnd(exists(stop.place), begins_chunk(stop));
}

Value* ListWalk::chunk_of(const Stop& stop) const {
  return kernel_.ir().CreateUDiv(tile_at(stop), kernel_.constant(attention::chunk_tiles));
}

// Places behind the last have its mark.
Value* MarkedInterval::read(Value* place) const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  constexpr int bytes_of_tile = block_rows * tile_keys / 8;
  Value* offset = ir.CreateAdd(ir.CreateMul(at_most_last(place), kernel_.constant(bytes_of_tile)),
                               kernel_.constant(attention_mask_lists::mark_place));
  return kernel_.load_scalar(ir.CreateAdd(bits_, ir.CreateZExt(offset, kernel_.i64())), kernel_.i32());
}

Value* MarkedInterval::mark(const Stop& stop) const { return stop.entry != nullptr ? stop.entry : read(stop.place); }

Value* MarkedInterval::marked_at(const Stop& stop) const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  const auto bit = [&](int of_mark, int of_tile) {
    Value* is_set = ir.CreateICmpEQ(mark(stop), kernel_.constant(of_mark));
    return ir.CreateSelect(is_set, kernel_.constant(1 << of_tile), kernel_.constant(0));
  };
  Value* marks = ir.CreateOr(bit(attention_mask_lists::mark_of_mixed, masked_bit),
                             bit(attention_mask_lists::mark_of_whole, whole_bit));
  return ir.CreateOr(tile_at(stop), marks);
}

Value* MarkedInterval::sees(const Stop& stop) const {
  return kernel_.ir().CreateICmpNE(mark(stop), kernel_.constant(0));
}

std::unique_ptr<attention::TileInterval> interval_of(Kernel& kernel, const Workgroup& workgroup, Value* first) {
  if (workgroup.has_bits)
    return std::make_unique<MarkedInterval>(kernel, first, workgroup.tiles,
                                            attention::bits_of_mask(kernel, score_fields, workgroup));
  const int tiles_of_chunk = workgroup.list != nullptr ? attention::list_chunk_tiles : attention::chunk_tiles;
  return std::make_unique<attention::TileInterval>(kernel, first, workgroup.tiles, tiles_of_chunk);
}

std::unique_ptr<TileWalk> walk_of(Kernel& kernel, const Workgroup& workgroup) {
  if (workgroup.walk) return std::make_unique<ListWalk>(kernel, *workgroup.walk);
  return interval_of(kernel, workgroup, workgroup.first_tile);
}

}  // namespace wavejit::attention_forward
