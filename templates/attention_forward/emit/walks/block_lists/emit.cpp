// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/emit/walks/block_lists/emit.h"

#include <llvm/IR/IntrinsicsAMDGPU.h>

#include <bit>
#include <utility>

#include "codegen/language/buffer.h"
#include "codegen/language/control.h"
#include "codegen/language/cross_lane.h"
#include "codegen/language/lds.h"
#include "templates/attention/emit/integers.h"
#include "templates/attention/emit/sequence.h"
#include "templates/attention/emit/visible_keys.h"
#include "templates/attention/kernel/marked_tile.h"
#include "templates/attention_forward/emit/walks/block_lists/order.h"
#include "templates/attention_forward/kernel/walks/block_lists/arguments.h"
#include "templates/attention_forward/kernel/walks/block_lists/walks.h"

namespace wavejit::attention_block_lists {
namespace {

using attention::begins_bit;
using attention::masked_bit;
using attention::maximum;
using attention::minimum;
using attention::most_blocks;
using attention::whole_bit;
using language::Buffer;
using language::Kernel;
using language::Likelihood;
using language::Value;
using language::Values;

constexpr int number_bytes = 4;
// Lanes that point here read 0 and store nothing.
constexpr std::uint32_t far_outside = 0x80000000;
constexpr int marks_bytes = marked_tiles * number_bytes;
constexpr int spare_bytes = 16;  // for lanes without a tile
constexpr int lanes_of_chunk = attention::chunk_tiles;
static_assert(threads % lanes_of_chunk == 0 && std::has_single_bit(static_cast<unsigned>(lanes_of_chunk)));
// log2 of the keys of a tile, which sizes of blocks are told beside.
constexpr int tile_bits = std::countr_zero(static_cast<unsigned>(attention::tile_keys));

constexpr attention::SequenceFields sequence_fields = {.query_starts = offsetof(Arguments, query_starts),
                                                       .query_rows = offsetof(Arguments, query_rows),
                                                       .query_length = offsetof(Arguments, query_length),
                                                       .key_starts = offsetof(Arguments, key_starts),
                                                       .key_lengths = offsetof(Arguments, key_lengths),
                                                       .key_rows = offsetof(Arguments, key_rows),
                                                       .key_length = offsetof(Arguments, key_length)};
constexpr attention::WindowFields window_fields = {.left = offsetof(Arguments, window_left),
                                                   .right = offsetof(Arguments, window_right)};
constexpr attention::DiagonalFields diagonal_fields = attention::diagonal_fields_of<Arguments>;

// A wave makes one unit's walk. It marks each tile that a list names, by a dword of LDS a tile: a bit for each block of
// rows and kind of list. Lists are gone through one after the other, so that lanes that meet at a tile write the same.
// Then lanes look at 64 marks at a time and write those that are there side by side.
class Lister {
 public:
  Lister(Kernel& kernel, const BlockListsKernel& spec)
      : kernel_(kernel),
        ir_(kernel.ir()),
        spec_(spec),
        lds_(kernel, marks_bytes + spare_bytes, 1),
        head_(kernel.workgroup_y()),
        batch_(kernel.workgroup_z()) {}

  void emit() {
    // Ids are made where they are first asked for: here, where every block can see them.
    (void)kernel_.lane();
    const attention::Sequence sequence =
        attention::sequence_of(kernel_, sequence_fields, batch_,
                               spec_.first_keys ? attention::KeyStarts::first_rows : attention::KeyStarts::packed);
    // The first workgroups of a head sort its units, the others make walks.
    Value* sorters = order_workgroups(kernel_);
    Value* sorts = ir_.CreateICmpULT(kernel_.workgroup_x(), sorters);
    language::if_uniform(kernel_, sorts, Likelihood::rarely,
                         [&] { UnitOrder(kernel_, lds_, sequence.query_length).emit(); });
    language::leave_if(kernel_, sorts);
    unit_ = ir_.CreateSub(kernel_.workgroup_x(), sorters);
    Value* unit_shift = number(offsetof(Arguments, unit_shift));
    Value* first_row = ir_.CreateShl(unit_, unit_shift);
    // Nobody has the rows behind a sequence's last.
    language::leave_if(kernel_, ir_.CreateICmpSGE(first_row, sequence.query_length));
    find_tiles(sequence, first_row);
    find_lists(unit_shift);
    find_place();
    write_walk();
  }

 private:
  Value* number(std::size_t field) { return kernel_.argument_i32(field); }
  Value* constant(int value) { return kernel_.constant(value); }
  Value* wide(Value* value) { return ir_.CreateZExt(value, kernel_.i64()); }

  void find_tiles(const attention::Sequence& sequence, Value* first_row) {
    Value* rows = ir_.CreateShl(constant(1), number(offsetof(Arguments, unit_shift)));
    Value* last_row = minimum(kernel_, ir_.CreateAdd(first_row, rows), sequence.query_length);
    last_row = ir_.CreateSub(last_row, constant(1));
    Value* diagonal = attention::diagonal_offset(kernel_, diagonal_fields, sequence);
    const auto of_row = [&](Value* row) {
      return attention::visible_keys(kernel_, window_fields, ir_.CreateAdd(row, diagonal), sequence.key_length);
    };
    const attention::KeyRange first = of_row(first_row);
    const attention::KeyRange last = of_row(last_row);
    Value* tile = constant(attention::tile_keys);
    key_tiles_ = ir_.CreateUDiv(ir_.CreateAdd(sequence.key_length, constant(attention::tile_keys - 1)), tile);
    first_tile_ = ir_.CreateSDiv(first.begin, tile);
    end_tile_ = ir_.CreateSDiv(
        ir_.CreateAdd(maximum(kernel_, last.end, constant(0)), constant(attention::tile_keys - 1)), tile);
    Value* shift = number(offsetof(Arguments, keys_shift));
    Value* keys_less_one = ir_.CreateSub(ir_.CreateShl(constant(1), shift), constant(1));
    key_blocks_ = ir_.CreateLShr(ir_.CreateAdd(sequence.key_length, keys_less_one), shift);
  }

  void find_lists(Value* unit_shift) {
    Value* shift = ir_.CreateSub(unit_shift, number(offsetof(Arguments, rows_shift)));
    lists_ = ir_.CreateShl(constant(1), shift);
    first_list_ = ir_.CreateShl(unit_, shift);
    Value* batch = ir_.CreateAnd(batch_, number(offsetof(Arguments, batch_mask)));
    Value* lists_of_head = number(offsetof(Arguments, row_blocks));
    Value* heads = ir_.CreateAdd(ir_.CreateMul(batch, number(offsetof(Arguments, heads))), head_);
    first_of_head_ = ir_.CreateMul(heads, lists_of_head);
  }

  struct List {
    Value* base;   // address
    Value* count;  // 0 where there is no such list
  };
  // `fields`: the offset of a Lists in the arguments. `number_of_list`: the number of the unit's list.
  List list(std::size_t fields, Value* number_of_list) {
    Value* of_head = ir_.CreateAdd(first_list_, number_of_list);
    Value* indices = kernel_.argument_i64(fields + offsetof(Lists, indices));
    Value* exists = ir_.CreateAnd(ir_.CreateICmpULT(of_head, number(offsetof(Arguments, row_blocks))),
                                  ir_.CreateIsNotNull(indices));
    Value* place = wide(ir_.CreateAdd(first_of_head_, of_head));
    Value* capacity = number(fields + offsetof(Lists, capacity));
    const auto [begin, end, is_one_of_all] = part_of_all(fields, exists, place);
    Value* counts = kernel_.argument_i64(fields + offsetof(Lists, counts));
    Value* has_count = ir_.CreateAnd(exists, ir_.CreateIsNotNull(counts));
    Value* counted = load_if(has_count, ir_.CreateAdd(counts, ir_.CreateShl(place, 2)));
    counted = minimum(kernel_, maximum(kernel_, counted, constant(0)), capacity);
    counted = ir_.CreateSelect(has_count, counted, capacity);
    Value* start = ir_.CreateSelect(is_one_of_all, wide(begin), ir_.CreateMul(place, wide(capacity)));
    Value* count = ir_.CreateSelect(is_one_of_all, ir_.CreateSub(end, begin), counted);
    return {.base = ir_.CreateAdd(indices, ir_.CreateShl(start, 2)),
            .count = ir_.CreateSelect(exists, count, constant(0))};
  }

  struct Part {
    Value* begin;
    Value* end;
    Value* there;
  };
  // Between two starts, both cut to the entries that there are.
  Part part_of_all(std::size_t fields, Value* exists, Value* place) {
    Value* starts = kernel_.argument_i64(fields + offsetof(Lists, starts));
    Value* capacity = number(fields + offsetof(Lists, capacity));
    Value* there = ir_.CreateIsNotNull(starts);
    Value* may_load = ir_.CreateAnd(exists, there);
    Value* address = ir_.CreateAdd(starts, ir_.CreateShl(place, 2));
    Value* begin = minimum(kernel_, maximum(kernel_, load_if(may_load, address), constant(0)), capacity);
    Value* next = load_if(may_load, ir_.CreateAdd(address, ir_.getInt64(number_bytes)));
    return {.begin = begin, .end = minimum(kernel_, maximum(kernel_, next, begin), capacity), .there = there};
  }
  // The kernel's own arguments are read in place of what is not there.
  Value* load_if(Value* may, Value* address) {
    return kernel_.load_scalar(ir_.CreateSelect(may, address, kernel_.argument_address()), kernel_.i32());
  }

  // Where the unit's header and walk stand.
  void find_place() {
    Value* of_batch = ir_.CreateAdd(ir_.CreateMul(batch_, number(offsetof(Arguments, heads))), head_);
    header_ = ir_.CreateAdd(ir_.CreateMul(of_batch, number(offsetof(Arguments, units))), unit_);
    Value* unit_entries = number(offsetof(Arguments, unit_entries));
    Value* even = ir_.CreateMul(header_, unit_entries);
    // The first entry of the unit's walk: after the most entries that the lists before it can need. An entry needs two
    // tiles at most, or four in pairs; and each unit needs one entry, since its lists may be empty.
    Value* before = constant(0);
    for (const std::size_t fields : {offsetof(Arguments, masked), offsetof(Arguments, whole)}) {
      Value* exists = ir_.CreateICmpULT(first_list_, number(offsetof(Arguments, row_blocks)));
      before =
          ir_.CreateAdd(before, part_of_all(fields, exists, wide(ir_.CreateAdd(first_of_head_, first_list_))).begin);
    }
    Value* shift = ir_.CreateAdd(ir_.CreateSub(number(offsetof(Arguments, keys_shift)), constant(tile_bits)),
                                 number(offsetof(Arguments, pairs)));
    Value* shared = ir_.CreateSelect(ir_.CreateIsNull(number(offsetof(Arguments, batch_mask))), batch_, constant(0));
    before = ir_.CreateAdd(ir_.CreateShl(before, shift), header_);
    before = ir_.CreateAdd(before, ir_.CreateMul(shared, number(offsetof(Arguments, batch_entries))));
    Value* most = number(offsetof(Arguments, most_entries));
    start_ = ir_.CreateSelect(ir_.CreateIsNull(unit_entries), before, even);
    start_ = ir_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, start_, ir_.CreateSub(most, constant(1)));
    Value* longest = ir_.CreateAdd(ir_.CreateShl(key_tiles_, 1), constant(1));
    room_ = ir_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, ir_.CreateSub(most, start_), longest);
  }

  // ---- Marks

  // `first`: the tile of the first mark.
  void mark_lists(Value* first) {
    for (const auto& [fields, bit] :
         {std::pair{offsetof(Arguments, masked), masked_bit}, std::pair{offsetof(Arguments, whole), whole_bit}}) {
      language::loop_in_phases(
          kernel_, 1, {constant(0)},
          [&](int, const Values& at) -> Values {
            const List each = list(fields, at[0]);
            language::if_uniform(kernel_, ir_.CreateICmpSGT(each.count, constant(0)), Likelihood::even,
                                 [&] { mark(each, blocks_of(at[0], bit), first); });
            return {ir_.CreateAdd(at[0], constant(1))};
          },
          [&](const Values& at) { return ir_.CreateICmpULT(at[0], lists_); });
    }
  }

  // The bits of a list's blocks of rows.
  Value* blocks_of(Value* number_of_list, int bit) {
    Value* shift = ir_.CreateSub(number(offsetof(Arguments, rows_shift)), constant(tile_bits));
    Value* two = ir_.CreateICmpNE(shift, constant(0));
    Value* bits = ir_.CreateSelect(two, constant(3 << bit), constant(1 << bit));
    return ir_.CreateShl(bits, ir_.CreateShl(number_of_list, shift));
  }

  void mark(const List& each, Value* bits, Value* first) {
    const Buffer entries(kernel_, each.base, ir_.CreateShl(each.count, 2));
    language::loop_in_phases(
        kernel_, 1, {constant(0)},
        [&](int, const Values& at) -> Values {
          Value* index = ir_.CreateAdd(at[0], kernel_.lane());
          Value* block = entries.load(number_bytes, ir_.CreateShl(index, 2), constant(0));
          Value* counts = ir_.CreateAnd(ir_.CreateICmpSLT(index, each.count), ir_.CreateICmpULT(block, key_blocks_));
          Value* shift = ir_.CreateSub(number(offsetof(Arguments, keys_shift)), constant(tile_bits));
          Value* tile = ir_.CreateSub(ir_.CreateShl(block, shift), first);
          mark_tile(tile, counts, bits);
          language::if_uniform(kernel_, ir_.CreateICmpNE(shift, constant(0)), Likelihood::even,
                               [&] { mark_tile(ir_.CreateAdd(tile, constant(1)), counts, bits); });
          return {ir_.CreateAdd(at[0], constant(threads))};
        },
        [&](const Values& at) { return ir_.CreateICmpSLT(at[0], each.count); });
  }

  void mark_tile(Value* tile, Value* counts, Value* bits) {
    Value* here = ir_.CreateAnd(counts, ir_.CreateICmpULT(tile, constant(marked_tiles)));
    Value* place = ir_.CreateSelect(here, ir_.CreateShl(tile, 2), constant(marks_bytes));
    lds_.write(0, ir_.CreateOr(lds_.read(0, number_bytes, place, 0), bits), place, 0);
  }

  void clear_marks() {
    constexpr int lane_bytes = 16;
    Value* zeros = llvm::Constant::getNullValue(kernel_.vector(kernel_.i32(), 4));
    Value* place = ir_.CreateMul(kernel_.lane(), constant(lane_bytes));
    for (int offset = 0; offset < marks_bytes; offset += threads * lane_bytes) lds_.write(0, zeros, place, offset);
  }

  // ---- The walk

  void write_walk() {
    const Buffer walk(kernel_,
                      ir_.CreateAdd(kernel_.argument_i64(offsetof(Arguments, entries)), ir_.CreateShl(wide(start_), 2)),
                      ir_.CreateShl(room_, 2));
    // The first marked tile, entries written, whether a second chunk began.
    const Values end = language::loop_in_phases(
        kernel_, 1, {constant(0), constant(0), constant(0)},
        [&](int, const Values& at) -> Values {
          clear_marks();
          mark_lists(at[0]);
          const Values written = write_marked(walk, at[0], {at[1], at[2]});
          return {ir_.CreateAdd(at[0], constant(marked_tiles)), written[0], written[1]};
        },
        [&](const Values& at) { return ir_.CreateICmpSLT(at[0], key_tiles_); });
    Value* empty = ir_.CreateICmpEQ(end[1], constant(0));
    language::if_uniform(kernel_, empty, Likelihood::even,
                         [&] { walk.store(constant(0), only_first(constant(0)), constant(0)); });
    Value* count = ir_.CreateSelect(empty, constant(1), minimum(kernel_, end[1], room_));
    Value* header = llvm::PoisonValue::get(kernel_.vector(kernel_.i32(), 4));
    std::uint64_t at = 0;
    for (Value* field : {start_, count, end[2], ir_.CreateZExt(empty, kernel_.i32())})
      header = ir_.CreateInsertElement(header, field, at++);
    const Buffer headers(kernel_,
                         ir_.CreateAdd(kernel_.argument_i64(offsetof(Arguments, headers)),
                                       ir_.CreateMul(wide(header_), ir_.getInt64(sizeof(Header)))),
                         constant(sizeof(Header)));
    headers.store(header, only_first(constant(0)), constant(0));
  }
  Value* only_first(Value* offset) {
    return ir_.CreateSelect(ir_.CreateICmpEQ(kernel_.lane(), constant(0)), offset, ir_.getInt32(far_outside));
  }

  // 64 tiles at a time.
  Values write_marked(const Buffer& walk, Value* first, const Values& before) {
    Value* end = minimum(kernel_, ir_.CreateSub(key_tiles_, first), constant(marked_tiles));
    const Values written = language::loop_in_phases(
        kernel_, 1, {constant(0), before[0], before[1]},
        [&](int, const Values& at) -> Values {
          Value* place = ir_.CreateShl(ir_.CreateAdd(at[0], kernel_.lane()), 2);
          Value* marks = lds_.read(0, number_bytes, place, 0);
          Value* tile = ir_.CreateAdd(ir_.CreateAdd(first, at[0]), kernel_.lane());
          const Values next = write_lanes(walk, tile, marks, {at[1], at[2]});
          return {ir_.CreateAdd(at[0], constant(threads)), next[0], next[1]};
        },
        [&](const Values& at) { return ir_.CreateICmpSLT(at[0], end); });
    return {written[1], written[2]};
  }

  Values write_lanes(const Buffer& walk, Value* tile, Value* marks, const Values& before) {
    // The mask may hide all of a tile that it goes over.
    Value* shown = ir_.CreateAnd(ir_.CreateICmpSGE(tile, first_tile_), ir_.CreateICmpSLT(tile, end_tile_));
    constexpr int whole_bits = ((1 << most_blocks) - 1) << whole_bit;
    marks = ir_.CreateSelect(shown, marks, ir_.CreateAnd(marks, constant(whole_bits)));
    Value* live = ir_.CreateAnd(ir_.CreateICmpNE(marks, constant(0)), ir_.CreateICmpSLT(tile, key_tiles_));
    Value* all_live = language::lanes_where(kernel_, live);
    Value* below = language::count_below(kernel_, all_live, constant(0));
    Value* lane = kernel_.lane();
    // The bits of the lane's chunk.
    Value* low = ir_.CreateTrunc(all_live, kernel_.i32());
    Value* high = ir_.CreateTrunc(ir_.CreateLShr(all_live, attention::dword_bits), kernel_.i32());
    Value* half = ir_.CreateSelect(ir_.CreateICmpULT(lane, constant(attention::dword_bits)), low, high);
    Value* of_chunk = ir_.CreateAnd(ir_.CreateLShr(half, ir_.CreateAnd(lane, constant(lanes_of_chunk))),
                                    constant((1 << lanes_of_chunk) - 1));
    Value* own = ir_.CreateShl(constant(1), ir_.CreateAnd(lane, constant(lanes_of_chunk - 1)));
    Value* is_first = ir_.CreateIsNull(ir_.CreateAnd(of_chunk, ir_.CreateSub(own, constant(1))));
    Value* not_the_first = ir_.CreateICmpSGT(ir_.CreateAdd(before[0], below), constant(0));
    Value* begins = ir_.CreateAnd(ir_.CreateAnd(live, is_first), not_the_first);
    Value* in_pairs = ir_.CreateICmpNE(number(offsetof(Arguments, pairs)), constant(0));
    Value* alone = ir_.CreateAnd(ir_.CreateAnd(live, in_pairs), ir_.CreateICmpEQ(of_chunk, own));
    Value* all_alone = language::lanes_where(kernel_, alone);
    Value* place = language::count_below(kernel_, all_alone, ir_.CreateAdd(before[0], below));
    Value* offset = ir_.CreateShl(place, 2);
    Value* entry = ir_.CreateOr(ir_.CreateOr(tile, marks),
                                ir_.CreateShl(ir_.CreateZExt(begins, kernel_.i32()), constant(begins_bit)));
    walk.store(entry, ir_.CreateSelect(live, offset, ir_.getInt32(far_outside)), constant(0));
    walk.store(tile, ir_.CreateSelect(alone, ir_.CreateAdd(offset, constant(number_bytes)), ir_.getInt32(far_outside)),
               constant(0));
    Value* several =
        ir_.CreateZExt(ir_.CreateICmpNE(language::lanes_where(kernel_, begins), ir_.getInt64(0)), kernel_.i32());
    Value* count = ir_.CreateAdd(ir_.CreateAdd(before[0], language::count_of(kernel_, all_live)),
                                 language::count_of(kernel_, all_alone));
    return {count, ir_.CreateOr(before[1], several)};
  }

  Kernel& kernel_;
  llvm::IRBuilder<>& ir_;
  const BlockListsKernel& spec_;
  language::Lds lds_;
  Value* unit_ = nullptr;
  Value* head_;
  Value* batch_;
  // Tiles of the sequence, those that the mask shows some row of the unit, and blocks of keys.
  Value* key_tiles_ = nullptr;
  Value* first_tile_ = nullptr;
  Value* end_tile_ = nullptr;
  Value* key_blocks_ = nullptr;
  // Lists of the unit: how many, the first of its head, and the head's first of all.
  Value* lists_ = nullptr;
  Value* first_list_ = nullptr;
  Value* first_of_head_ = nullptr;
  Value* header_ = nullptr;
  Value* start_ = nullptr;
  Value* room_ = nullptr;
};

}  // namespace

std::expected<std::unique_ptr<llvm::Module>, std::string> emit(const BlockListsKernel& spec,
                                                               const targets::Target& target,
                                                               llvm::LLVMContext& context) {
  if (spec.target != target.id)
    return std::unexpected("the spec is for target=" + spec.target + ", not for " + std::string(target.id));
  if (auto reason = refusal_of(spec)) return std::unexpected(*std::move(reason));
  Kernel kernel(
      context, target,
      {.name = kernel_name(spec), .threads = threads, .waves_per_simd = 4, .argument_bytes = sizeof(Arguments)});
  Lister(kernel, spec).emit();
  return kernel.finish();
}

}  // namespace wavejit::attention_block_lists
