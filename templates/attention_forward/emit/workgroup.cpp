// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/emit/workgroup.h"

#include <llvm/IR/IntrinsicsAMDGPU.h>

#include "codegen/language/control.h"
#include "codegen/language/synchronize.h"
#include "templates/attention_forward/emit/integers.h"
#include "templates/attention_forward/emit/many_rows.h"
#include "templates/attention_forward/emit/sequence.h"
#include "templates/attention_forward/emit/split.h"
#include "templates/attention_forward/kernel/arguments.h"
#include "templates/attention_forward/kernel/parameters.h"
#include "templates/attention_forward/kernel/row_limits.h"

namespace wavejit::attention_forward {
namespace {

using language::Buffer;
using language::Kernel;
using language::Value;

// floor(value · multiplier / 2³²)
Value* high_half(Kernel& kernel, Value* value, Value* multiplier) {
  llvm::IRBuilder<>& ir = kernel.ir();
  Value* product = ir.CreateMul(ir.CreateZExt(value, kernel.i64()), ir.CreateZExt(multiplier, kernel.i64()));
  return ir.CreateTrunc(ir.CreateLShr(product, 32), kernel.i32());
}

// q head → kv head without a division: see Arguments::kv_head_multiplier.
Value* kv_head_of(Kernel& kernel, Value* query_head) {
  llvm::IRBuilder<>& ir = kernel.ir();
  Value* multiplier = kernel.argument_i32(offsetof(Arguments, kv_head_multiplier));
  Value* quotient = high_half(kernel, query_head, multiplier);
  return ir.CreateSelect(ir.CreateICmpEQ(multiplier, kernel.constant(0)), query_head, quotient);
}

Value* all_heads(Kernel& kernel, Value* group, Value* bytes, Value* head_stride) {
  llvm::IRBuilder<>& ir = kernel.ir();
  return ir.CreateAdd(bytes, ir.CreateMul(ir.CreateSub(group, kernel.constant(1)), head_stride));
}

// Where the fields of one tensor stand in Arguments.
struct Fields {
  std::size_t pointer, batch_stride, head_stride, row_stride;
};
constexpr Fields q_fields{offsetof(Arguments, q), offsetof(Arguments, q_batch_stride),
                          offsetof(Arguments, q_head_stride), offsetof(Arguments, q_row_stride)};
constexpr Fields k_fields{offsetof(Arguments, k), offsetof(Arguments, k_batch_stride),
                          offsetof(Arguments, k_head_stride), offsetof(Arguments, k_row_stride)};
constexpr Fields v_fields{offsetof(Arguments, v), offsetof(Arguments, v_batch_stride),
                          offsetof(Arguments, v_head_stride), offsetof(Arguments, v_row_stride)};
constexpr Fields o_fields{offsetof(Arguments, o), offsetof(Arguments, o_batch_stride),
                          offsetof(Arguments, o_head_stride), offsetof(Arguments, o_row_stride)};

// Consecutive x go to the dies in turn. Swizzled, the heads of a die are neighbours, which share keys and values.
Value* query_head_of(Kernel& kernel, Value* x) {
  llvm::IRBuilder<>& ir = kernel.ir();
  Value* heads_per_die = kernel.argument_i32(offsetof(Arguments, heads_per_die));
  Value* multiplier = kernel.argument_i32(offsetof(Arguments, die_multiplier));
  Value* last_head = ir.CreateSub(kernel.argument_i32(offsetof(Arguments, query_heads)), kernel.constant(1));
  return ir.CreateSub(ir.CreateMul(x, heads_per_die), ir.CreateMul(high_half(kernel, x, multiplier), last_head));
}

// A head of a cache in pages: the tiles find their rows by the block table (key_pages.h).
Slice cache_of(Kernel& kernel, const Fields& fields, Value* head) {
  llvm::IRBuilder<>& ir = kernel.ir();
  Value* base = ir.CreateAdd(kernel.argument_i64(fields.pointer),
                             ir.CreateMul(ir.CreateZExt(head, kernel.i64()), kernel.argument_i64(fields.head_stride)));
  return {.buffer = Buffer(kernel, base, kernel.constant(0)),
          .row_stride = kernel.argument_i32(fields.row_stride),
          .base = base,
          .page_stride = kernel.argument_i64(fields.batch_stride)};
}

// With `group`, of so many heads from `head` on.
Slice slice_of(Kernel& kernel, const Fields& fields, Value* batch, Value* head, Value* first_row, Value* rows,
               int row_bytes, Value* group = nullptr) {
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
  return {.buffer = Buffer(kernel, base, all_heads(kernel, group, bytes, head_stride)),
          .row_stride = row_stride,
          .head_stride = head_stride};
}

// Longer sequences are another kernel's.
void leave_to_others(Kernel& kernel, Value* query_length) {
  Value* few = kernel.argument_i32(limit_field(offsetof(RowLimits, few_rows)));
  language::leave_if(kernel, kernel.ir().CreateICmpUGT(query_length, few));
}

// Division of packed rows by the group.
class Positions {
 public:
  // `group`: null where a row is a position.
  Positions(Kernel& kernel, Value* group) : kernel_(kernel), group_(group) {}

  Value* group() const { return group_; }
  Value* rows(Value* positions) const { return group_ ? kernel_.ir().CreateMul(positions, group_) : positions; }
  Value* position(Value* row) const { return group_ ? kv_head_of(kernel_, row) : row; }

 private:
  Kernel& kernel_;
  Value* group_;
};

}  // namespace

WorkgroupPlace find_place(Kernel& kernel, const KernelSpec& spec) {
  llvm::IRBuilder<>& ir = kernel.ir();
  const auto constant = [&](int value) { return kernel.constant(value); };

  // Ids are made where they are first asked for: here, where every block can see them.
  static_cast<void>(kernel.wave());
  static_cast<void>(kernel.lane());
  GridPlace place = {.query_head = kernel.workgroup_x(), .split = nullptr};
  if (spec.split_keys != 0) place = place_of(kernel, spec, place.query_head);
  Value* group = spec.packed_heads ? kernel.argument_i32(offsetof(Arguments, group)) : nullptr;
  const Positions positions(kernel, group);
  // Nobody shares the keys of packed heads, but the few tiles of long groups.
  Value* query_head = spec.packed_heads ? positions.rows(place.query_head) : query_head_of(kernel, place.query_head);
  const bool finds = spec.rows == QueriesOf::many;
  const TilePlace found = finds ? find_tile(kernel, spec) : TilePlace{};
  Value* batch = finds ? found.sequence : kernel.workgroup_z();
  const KeyStarts starts = !spec.first_keys ? KeyStarts::packed
                           : spec.paged     ? KeyStarts::first_slots
                                            : KeyStarts::first_rows;
  const Sequence sequence = sequence_of(kernel, batch, starts);
  Value* kv_head = spec.packed_heads ? place.query_head : kv_head_of(kernel, query_head);
  Value* last_key = ir.CreateSub(sequence.key_length, constant(1));

  if (spec.rows == QueriesOf::few) leave_to_others(kernel, sequence.query_length);
  // The grid has the tiles of the longest sequence.
  Value* y = kernel.workgroup_y();
  Value* query_tile = finds ? found.tile : y;
  Value* rows = positions.rows(sequence.query_length);
  Value* query_tiles = ir.CreateUDiv(ir.CreateAdd(rows, constant(spec.tile_queries - 1)), constant(spec.tile_queries));
  Value* places = spec.paired_tiles ? ir.CreateLShr(ir.CreateAdd(query_tiles, constant(1)), constant(1)) : query_tiles;
  language::leave_if(kernel, ir.CreateICmpUGE(query_tile, places));
  // With a diagonal the last query tile has the most keys: it starts first, and the short ones fill the end.
  if (spec.mask != Mask::none) query_tile = ir.CreateSub(ir.CreateSub(query_tiles, constant(1)), query_tile);
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

Workgroup begin_tile(Kernel& kernel, const KernelSpec& spec, const WorkgroupPlace& place, Value* query_tile) {
  llvm::IRBuilder<>& ir = kernel.ir();
  const auto constant = [&](int value) { return kernel.constant(value); };
  Value* wave = kernel.wave();
  Value* lane = kernel.lane();
  const Positions positions(kernel, place.group);
  const Sequence& sequence = place.sequence;
  Value* query_length = sequence.query_length;
  Value* key_length = sequence.key_length;
  Value* first = ir.CreateMul(query_tile, constant(spec.tile_queries));
  Value* first_of_wave = ir.CreateAdd(first, ir.CreateMul(wave, constant(Workgroup::rows_per_wave)));
  Value* of_lane = ir.CreateAdd(first_of_wave, ir.CreateAnd(lane, constant(Workgroup::rows_per_wave - 1)));
  Value* first_row = positions.position(first);
  Value* first_row_of_wave = positions.position(first_of_wave);
  Value* row = positions.position(of_lane);
  Value* head_in_group = spec.packed_heads ? ir.CreateSub(of_lane, positions.rows(row)) : nullptr;
  Value* has_row = spec.packed_heads ? ir.CreateICmpULT(of_lane, place.rows) : nullptr;

  // The first and the last key that a row sees. Window limits are at most unlimited_window.
  Value* offset = nullptr;
  if (spec.mask != Mask::none || spec.has(Modifier::alibi)) {
    offset = diagonal_offset(kernel,
                             {.causal_offset = offsetof(Arguments, causal_offset),
                              .bottom_right_mask = offsetof(Arguments, bottom_right_mask)},
                             sequence);
  }
  Value* to_limit = spec.mask == Mask::none ? nullptr : offset;
  Value* to_begin = nullptr;
  if (spec.mask == Mask::window) {
    to_limit = ir.CreateAdd(offset, kernel.argument_i32(offsetof(Arguments, window_right)));
    to_begin = ir.CreateSub(offset, kernel.argument_i32(offsetof(Arguments, window_left)));
  }
  const auto limit_of = [&](Value* query_row) {
    return to_limit ? minimum(kernel, ir.CreateAdd(query_row, to_limit), place.last_key) : place.last_key;
  };
  Value* last_row = positions.position(
      minimum(kernel, ir.CreateAdd(first, constant(spec.tile_queries - 1)), ir.CreateSub(place.rows, constant(1))));
  // ceil(keys / tile), and one tile even if no row sees a key: fully masked it changes nothing, and O = 0 comes out of
  // the same code.
  Value* keys = maximum(kernel, ir.CreateAdd(limit_of(last_row), constant(1)), constant(1));
  Value* last_tile = ir.CreateUDiv(ir.CreateSub(keys, constant(1)), constant(spec.tile_keys));
  Value* first_tile = constant(0);
  if (to_begin) {
    first_tile =
        ir.CreateUDiv(maximum(kernel, ir.CreateAdd(first_row, to_begin), constant(0)), constant(spec.tile_keys));
    first_tile = minimum(kernel, first_tile, last_tile);
  }
  if (spec.split_keys != 0) {
    const KeyTiles run = tiles_of_run(kernel, spec, place.split, key_length);
    first_tile = maximum(kernel, first_tile, run.first);
    last_tile = minimum(kernel, last_tile, run.last);
    // No row sees a key of the run: nobody reads what would stand in its slots.
    language::leave_if(kernel, ir.CreateICmpSGT(first_tile, last_tile));
  }
  Value* wave_limit = limit_of(first_row_of_wave);

  // A negative scale is a positive one with the query negated: exact, and the maximum of the scores stays a maximum. A
  // zero scale becomes the smallest normal number: every product with a finite score vanishes in 2⁰ = 1 all the same,
  // while −inf · c stays −inf for masked keys. All on the bit pattern, in scalar registers.
  Value* scale = kernel.argument_i32(offsetof(Arguments, scale_log2e));
  Value* sign = ir.CreateAnd(ir.CreateAShr(scale, constant(31)), ir.getInt32(0x80008000));
  Value* magnitude = ir.CreateBinaryIntrinsic(llvm::Intrinsic::umax, ir.CreateAnd(scale, ir.getInt32(0x7FFFFFFF)),
                                              ir.getInt32(0x00800000));

  const int qk_bytes = spec.head_dim_qk * 2;
  const int v_bytes = spec.head_dim_v * 2;
  const int o_bytes = spec.output_fp32 ? 2 * v_bytes : v_bytes;
  const auto keys_of = [&](const Fields& fields, int row_bytes) {
    return spec.paged ? cache_of(kernel, fields, place.kv_head)
                      : slice_of(kernel, fields, place.batch, place.kv_head, sequence.key_start, key_length, row_bytes);
  };
  return {
      .q = slice_of(kernel, q_fields, place.batch, place.query_head, sequence.query_start, query_length, qk_bytes,
                    positions.group()),
      .k = keys_of(k_fields, qk_bytes),
      .v = keys_of(v_fields, v_bytes),
      .o = slice_of(kernel, o_fields, place.batch, place.query_head, sequence.query_start, query_length, o_bytes,
                    positions.group()),
      .query_head = place.query_head,
      .batch = place.batch,
      .query_start = sequence.query_start,
      .query_length = query_length,
      .first_slot = sequence.key_start,
      .scale_log2e = ir.CreateBitCast(magnitude, kernel.f32()),
      .query_sign = sign,
      .rescale_threshold = kernel.argument_f32(offsetof(Arguments, rescale_threshold)),
      .first_tile = first_tile,
      .tiles = ir.CreateAdd(last_tile, constant(1)),
      .first_row = first_row,
      .row = row,
      .lane_group = ir.CreateLShr(lane, constant(5)),
      .first_row_of_wave = first_row_of_wave,
      .limit_offset = to_limit,
      .last_key = place.last_key,
      .wave_limit = wave_limit,
      .begin_offset = to_begin,
      .wave_begin =
          to_begin
              ? ir.CreateAdd(positions.position(ir.CreateAdd(first_of_wave, constant(Workgroup::rows_per_wave - 1))),
                             to_begin)
              : nullptr,
      .diagonal_offset = spec.has(Modifier::alibi) ? offset : nullptr,
      .head_in_group = head_in_group,
      .has_row = has_row,
      .group = positions.group(),
  };
}

Workgroup begin_workgroup(Kernel& kernel, const KernelSpec& spec) {
  const WorkgroupPlace place = find_place(kernel, spec);
  return begin_tile(kernel, spec, place, place.query_tile);
}

Value* lane_row_offset(Kernel& kernel, const Workgroup& workgroup, Value* row, Value* row_stride, Value* head_stride) {
  // A slice with the rows by which tiles overrun it is below 4 GiB (problem.h): so far from its end.
  constexpr std::uint32_t far_outside = 0xFFFFC000;
  llvm::IRBuilder<>& ir = kernel.ir();
  Value* offset = ir.CreateMul(row, row_stride);
  if (workgroup.group == nullptr) return offset;
  offset = ir.CreateAdd(offset, ir.CreateMul(workgroup.head_in_group, head_stride));
  return ir.CreateSelect(workgroup.has_row, offset, ir.getInt32(far_outside));
}

Value* span_of_heads(Kernel& kernel, const Workgroup& workgroup, Value* bytes, Value* head_stride) {
  return workgroup.group == nullptr ? bytes : all_heads(kernel, workgroup.group, bytes, head_stride);
}

Value* lane_made_anew(Kernel& kernel) {
  llvm::IRBuilder<>& ir = kernel.ir();
  Value* all = language::opaque(kernel, kernel.constant(-1));
  Value* lane = ir.CreateIntrinsic(llvm::Intrinsic::amdgcn_mbcnt_lo, {}, {all, kernel.constant(0)});
  return ir.CreateIntrinsic(llvm::Intrinsic::amdgcn_mbcnt_hi, {}, {all, lane});
}

LanePlace lane_place(Kernel& kernel, const KernelSpec& spec, const Workgroup& workgroup) {
  if (!registers_are_short(spec)) return {.row = workgroup.row, .lane_group = workgroup.lane_group};
  llvm::IRBuilder<>& ir = kernel.ir();
  Value* lane = lane_made_anew(kernel);
  return {.row = ir.CreateAdd(workgroup.first_row_of_wave,
                              ir.CreateAnd(lane, kernel.constant(Workgroup::rows_per_wave - 1))),
          .lane_group = ir.CreateLShr(lane, kernel.constant(5))};
}

}  // namespace wavejit::attention_forward
