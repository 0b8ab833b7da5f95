// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/emit/workgroup.h"

#include <llvm/IR/IntrinsicsAMDGPU.h>

#include "codegen/language/control.h"
#include "templates/attention_forward/call/arguments.h"
#include "templates/attention_forward/emit/integers.h"
#include "templates/attention_forward/emit/sequence.h"
#include "templates/attention_forward/emit/split.h"

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

Slice slice_of(Kernel& kernel, const Fields& fields, Value* batch, Value* head, Value* first_row, Value* rows,
               int row_bytes) {
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
  return {Buffer(kernel, base, language::slice_bytes(kernel, rows, row_stride, row_bytes)), row_stride};
}

}  // namespace

Workgroup begin_workgroup(Kernel& kernel, const KernelSpec& spec) {
  llvm::IRBuilder<>& ir = kernel.ir();
  const auto constant = [&](int value) { return kernel.constant(value); };

  // Ids are made where they are first asked for: here, where every block can see them.
  Value* wave = kernel.wave();
  Value* lane = kernel.lane();
  GridPlace place = {.query_head = kernel.workgroup_x(), .split = nullptr};
  if (spec.split_keys != 0) place = place_of(kernel, place.query_head);
  Value* query_head = query_head_of(kernel, place.query_head);
  Value* batch = kernel.workgroup_z();
  const Sequence sequence = sequence_of(kernel, batch);
  Value* query_length = sequence.query_length;
  Value* key_length = sequence.key_length;
  Value* kv_head = kv_head_of(kernel, query_head);
  Value* last_key = ir.CreateSub(key_length, constant(1));

  // The grid has the tiles of the longest sequence.
  Value* query_tile = kernel.workgroup_y();
  Value* query_tiles =
      ir.CreateUDiv(ir.CreateAdd(query_length, constant(spec.tile_queries - 1)), constant(spec.tile_queries));
  language::leave_if(kernel, ir.CreateICmpUGE(query_tile, query_tiles));
  // With a diagonal the last query tile has the most keys: it starts first, and the short ones fill the end.
  if (spec.mask != Mask::none) query_tile = ir.CreateSub(ir.CreateSub(query_tiles, constant(1)), query_tile);
  Value* first_row = ir.CreateMul(query_tile, constant(spec.tile_queries));
  Value* first_row_of_wave = ir.CreateAdd(first_row, ir.CreateMul(wave, constant(Workgroup::rows_per_wave)));
  Value* row = ir.CreateAdd(first_row_of_wave, ir.CreateAnd(lane, constant(Workgroup::rows_per_wave - 1)));

  // The first and the last key that a row sees. Row numbers and lengths stay below 2²⁶ (a slice is under 4 GiB and a
  // row has at least 128 bytes), so an offset cut to ±2²⁹ hides and shows the same keys as the whole one, and nothing
  // below overflows: window limits are at most unlimited_window.
  Value* offset = nullptr;
  if (spec.mask != Mask::none || spec.has(Modifier::alibi)) {
    constexpr int far = 1 << 29;
    Value* bottom_right = kernel.argument_i32(offsetof(Arguments, bottom_right_mask));
    offset = ir.CreateAdd(kernel.argument_i32(offsetof(Arguments, causal_offset)),
                          ir.CreateAnd(ir.CreateSub(key_length, query_length), bottom_right));
    offset = maximum(kernel, minimum(kernel, offset, constant(far)), constant(-far));
  }
  Value* to_limit = spec.mask == Mask::none ? nullptr : offset;
  Value* to_begin = nullptr;
  if (spec.mask == Mask::window) {
    to_limit = ir.CreateAdd(offset, kernel.argument_i32(offsetof(Arguments, window_right)));
    to_begin = ir.CreateSub(offset, kernel.argument_i32(offsetof(Arguments, window_left)));
  }
  const auto limit_of = [&](Value* query_row) {
    return to_limit ? minimum(kernel, ir.CreateAdd(query_row, to_limit), last_key) : last_key;
  };
  Value* last_row = minimum(kernel, ir.CreateAdd(first_row, constant(spec.tile_queries - 1)),
                            ir.CreateSub(query_length, constant(1)));
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
  Value* row_limit = limit_of(row);
  Value* wave_limit = limit_of(first_row_of_wave);
  Value* key_rows = key_length;
  if (spec.split_keys != 0) {
    const KeyTiles run = tiles_of_run(kernel, spec, place.split, key_length);
    first_tile = maximum(kernel, first_tile, run.first);
    last_tile = minimum(kernel, last_tile, run.last);
    // Where no row sees a key of the run, tile 0 is walked, hidden from all, and reads zeros: a slice without rows.
    Value* sees_any = ir.CreateICmpSLE(first_tile, last_tile);
    first_tile = ir.CreateSelect(sees_any, first_tile, constant(0));
    last_tile = ir.CreateSelect(sees_any, last_tile, constant(0));
    row_limit = ir.CreateSelect(sees_any, row_limit, constant(-1));
    wave_limit = ir.CreateSelect(sees_any, wave_limit, constant(-1));
    key_rows = ir.CreateSelect(sees_any, key_length, constant(0));
  }

  // A negative scale is a positive one with the query negated: exact, and the maximum of the scores stays a maximum. A
  // zero scale becomes the smallest normal number: every product with a finite score vanishes in 2⁰ = 1 all the same,
  // while −inf · c stays −inf for masked keys. All on the bit pattern, in scalar registers.
  Value* scale = kernel.argument_i32(offsetof(Arguments, scale_log2e));
  Value* sign = ir.CreateAnd(ir.CreateAShr(scale, constant(31)), ir.getInt32(0x80008000));
  Value* magnitude = ir.CreateBinaryIntrinsic(llvm::Intrinsic::umax, ir.CreateAnd(scale, ir.getInt32(0x7FFFFFFF)),
                                              ir.getInt32(0x00800000));

  const int qk_bytes = spec.head_dim_qk * 2;
  const int v_bytes = spec.head_dim_v * 2;
  return {
      .q = slice_of(kernel, q_fields, batch, query_head, sequence.query_start, query_length, qk_bytes),
      .k = slice_of(kernel, k_fields, batch, kv_head, sequence.key_start, key_rows, qk_bytes),
      .v = slice_of(kernel, v_fields, batch, kv_head, sequence.key_start, key_rows, v_bytes),
      .o = slice_of(kernel, o_fields, batch, query_head, sequence.query_start, query_length, v_bytes),
      .query_head = query_head,
      .batch = batch,
      .split = place.split,
      .query_start = sequence.query_start,
      .query_length = query_length,
      .scale_log2e = ir.CreateBitCast(magnitude, kernel.f32()),
      .query_sign = sign,
      .rescale_threshold = kernel.argument_f32(offsetof(Arguments, rescale_threshold)),
      .first_tile = first_tile,
      .tiles = ir.CreateAdd(last_tile, constant(1)),
      .first_row = first_row,
      .row = row,
      .lane_group = ir.CreateLShr(lane, constant(5)),
      .row_limit = row_limit,
      .wave_limit = wave_limit,
      .row_begin = to_begin ? ir.CreateAdd(row, to_begin) : nullptr,
      .wave_begin =
          to_begin ? ir.CreateAdd(ir.CreateAdd(first_row_of_wave, constant(Workgroup::rows_per_wave - 1)), to_begin)
                   : nullptr,
      .row_diagonal = spec.has(Modifier::alibi) ? ir.CreateAdd(row, offset) : nullptr,
  };
}

}  // namespace wavejit::attention_forward
