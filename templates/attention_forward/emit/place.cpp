// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Where a workgroup stands in the grid: its head, sequence, query tile and run of keys.
#include "codegen/language/control.h"
#include "templates/attention/emit/integers.h"
#include "templates/attention/emit/listed_keys.h"
#include "templates/attention/emit/sequence.h"
#include "templates/attention_forward/emit/many_rows.h"
#include "templates/attention_forward/emit/positions.h"
#include "templates/attention_forward/emit/split.h"
#include "templates/attention_forward/emit/walks/list_walk.h"
#include "templates/attention_forward/emit/workgroup.h"
#include "templates/attention_forward/kernel/arguments.h"
#include "templates/attention_forward/kernel/key_list_arguments.h"
#include "templates/attention_forward/kernel/row_limits.h"

namespace wavejit::attention_forward {
namespace {

using language::Kernel;
using language::Value;

// Consecutive x go to the dies in turn. Swizzled, the heads of a die are neighbours, which share keys and values.
Value* query_head_of(Kernel& kernel, Value* x) {
  llvm::IRBuilder<>& ir = kernel.ir();
  Value* heads_per_die = kernel.argument_i32(offsetof(Arguments, heads_per_die));
  Value* multiplier = kernel.argument_i32(offsetof(Arguments, die_multiplier));
  Value* last_head = ir.CreateSub(kernel.argument_i32(offsetof(Arguments, query_heads)), kernel.constant(1));
  return ir.CreateSub(ir.CreateMul(x, heads_per_die), ir.CreateMul(high_half(kernel, x, multiplier), last_head));
}

// Longer sequences are another kernel's.
void leave_to_others(Kernel& kernel, Value* query_length) {
  Value* few = kernel.argument_i32(limit_field(offsetof(RowLimits, few_rows)));
  language::leave_if(kernel, kernel.ir().CreateICmpUGT(query_length, few));
}

// For listed keys: which query of which sequence.
struct ListedQuery {
  Value* batch = nullptr;
  Value* query = nullptr;
};
ListedQuery listed_query(Kernel& kernel) {
  llvm::IRBuilder<>& ir = kernel.ir();
  Value* queries = kernel.argument_i32(offsetof(Arguments, query_length));
  Value* of_all = kernel.workgroup_x();
  Value* batch = kernel.uniform(ir.CreateUDiv(of_all, queries));
  return {.batch = batch, .query = ir.CreateSub(of_all, ir.CreateMul(batch, queries))};
}

// Rows are those of one query. Keys are counted by their place in its list, and what the sequence and the diagonal hide
// is not named.
WorkgroupPlace place_in_list(Kernel& kernel, const ForwardKernel& spec, Value* query, WorkgroupPlace place) {
  llvm::IRBuilder<>& ir = kernel.ir();
  language::leave_if(kernel, ir.CreateICmpUGE(query, place.sequence.query_length));
  place.first_row = ir.CreateMul(query, place.group);
  place.rows = ir.CreateAdd(place.first_row, place.group);
  constexpr attention::QueryFields fields = {
      .query_starts = offsetof(Arguments, sequences) + offsetof(SequenceArguments, query_starts),
      .query_length = offsetof(Arguments, query_length)};
  Value* of_all = attention::query_of_all(kernel, fields, place.batch, place.sequence.query_start, query);
  const attention::KeyList list = attention::list_of(kernel, key_lists_at, of_all, place.kv_head);
  place.list = list.entries;
  place.last_key = ir.CreateSub(list.count, kernel.constant(1));
  place.named_keys = spec.slots
                         ? attention::named_slots_of(kernel, key_lists_at)
                         : attention::named_keys_of(kernel, key_lists_at, diagonal_fields, place.sequence, query);
  return place;
}

}  // namespace

WorkgroupPlace find_place(Kernel& kernel, const ForwardKernel& spec) {
  llvm::IRBuilder<>& ir = kernel.ir();
  const auto constant = [&](int value) { return kernel.constant(value); };

  // Ids are made where they are first asked for: here, where every block can see them.
  static_cast<void>(kernel.wave());
  static_cast<void>(kernel.lane());
  GridPlace place = {.query_head = spec.listed ? kernel.workgroup_z() : kernel.workgroup_x(), .split = nullptr};
  if (spec.split_keys != 0) place = place_of(kernel, spec, place.query_head);
  Value* group = spec.packed_heads ? kernel.argument_i32(offsetof(Arguments, group)) : nullptr;
  const Positions positions(kernel, group);
  // Nobody shares the keys of packed heads, but the few tiles of long groups.
  Value* query_head = spec.packed_heads ? positions.rows(place.query_head) : query_head_of(kernel, place.query_head);
  const bool finds = spec.rows == QueriesOf::many;
  const TilePlace found = finds ? find_tile(kernel, spec) : TilePlace{};
  const ListedQuery listed = spec.listed ? listed_query(kernel) : ListedQuery{};
  Value* batch = finds ? found.sequence : spec.listed ? listed.batch : kernel.workgroup_z();
  const KeyStarts starts = !spec.first_keys ? KeyStarts::packed
                           : spec.paged     ? KeyStarts::first_slots
                                            : KeyStarts::first_rows;
  const Sequence sequence = sequence_of(kernel, length_fields, batch, starts);
  Value* kv_head = spec.packed_heads ? place.query_head : kv_head_of(kernel, query_head);
  Value* last_key = ir.CreateSub(sequence.key_length, constant(1));

  if (spec.listed)
    return place_in_list(kernel, spec, listed.query,
                         {.query_head = query_head,
                          .kv_head = kv_head,
                          .batch = batch,
                          .split = place.split,
                          .group = group,
                          .sequence = sequence,
                          .rows = nullptr,
                          .last_key = nullptr,
                          .query_tile = kernel.workgroup_y(),
                          .second_tile = nullptr});

  if (spec.rows == QueriesOf::few) leave_to_others(kernel, sequence.query_length);
  // The grid has the tiles of the longest sequence.
  Value* y = kernel.workgroup_y();
  Value* query_tile = finds ? found.tile : spec.block_lists ? tile_in_order(kernel, spec, batch, query_head, y) : y;
  Value* rows = positions.rows(sequence.query_length);
  Value* query_tiles = ir.CreateUDiv(ir.CreateAdd(rows, constant(spec.tile_queries - 1)), constant(spec.tile_queries));
  Value* places = spec.paired_tiles ? ir.CreateLShr(ir.CreateAdd(query_tiles, constant(1)), constant(1)) : query_tiles;
  language::leave_if(kernel, ir.CreateICmpUGE(query_tile, places));
  // With a diagonal the last query tile has the most keys: it starts first, and the short ones fill the end.
  if (spec.mask != Mask::none && !spec.block_lists)
    query_tile = ir.CreateSub(ir.CreateSub(query_tiles, constant(1)), query_tile);
  return {.query_head = query_head,
          .kv_head = kv_head,
          .batch = batch,
          .split = place.split,
          .group = group,
          .sequence = sequence,
          .rows = rows,
          .last_key = last_key,
          .query_tile = query_tile,
          .second_tile = spec.paired_tiles ? y : nullptr};
}

}  // namespace wavejit::attention_forward
