// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_backward/emit/query_place.h"

#include "codegen/language/control.h"
#include "codegen/language/lane_place.h"
#include "templates/attention/emit/integers.h"
#include "templates/attention/emit/scale.h"
#include "templates/attention/emit/visible_keys.h"
#include "templates/attention_backward/emit/fields.h"
#include "templates/attention_backward/kernel/arguments.h"

namespace wavejit::attention_backward {

using attention::KeyLimits;
using attention::maximum;
using attention::minimum;
using attention::tile_keys;
using language::Kernel;
using language::Value;

QueryPlace find_query_place(Kernel& kernel, const QueryKernel& spec) {
  llvm::IRBuilder<>& ir = kernel.ir();
  const auto constant = [&](int value) { return kernel.constant(value); };
  // Ids are made where they are first asked for: here, where every block can see them.
  Value* wave = kernel.wave();
  Value* lane = kernel.lane();
  Value* head = kernel.workgroup_x();
  Value* batch = kernel.workgroup_z();
  QueryPlace place = {
      .sequence = attention::sequence_of(kernel, length_fields, batch),
      .kv_head = attention::divided(kernel, head, kernel.argument_i32(offsetof(Arguments, kv_head_multiplier))),
      .queries = {},
      .first_tile = constant(0),
      .tiles = nullptr};
  const attention::Sequence& sequence = place.sequence;
  // The grid has the tiles of the longest sequence. With a diagonal the last one has the most keys: it starts first.
  Value* query_tile = kernel.workgroup_y();
  const int tile_queries = tile_queries_of(spec);
  Value* query_tiles =
      ir.CreateUDiv(ir.CreateAdd(sequence.query_length, constant(tile_queries - 1)), constant(tile_queries));
  language::leave_if(kernel, ir.CreateICmpUGE(query_tile, query_tiles));
  if (spec.mask != Mask::none) query_tile = ir.CreateSub(ir.CreateSub(query_tiles, constant(1)), query_tile);

  Value* first_row = ir.CreateMul(query_tile, constant(tile_queries));
  Value* last_row = minimum(kernel, ir.CreateAdd(first_row, constant(tile_queries - 1)),
                            ir.CreateSub(sequence.query_length, constant(1)));
  Value* last_key = ir.CreateSub(sequence.key_length, constant(1));
  const KeyLimits limits =
      attention::key_limits(kernel, spec.mask, spec.has(Modifier::alibi), diagonal_fields, window_fields, sequence);
  const auto limit_of = [&](Value* row) {
    return limits.to_limit ? minimum(kernel, ir.CreateAdd(row, limits.to_limit), last_key) : last_key;
  };
  // One tile even if no row sees a key: hidden throughout, it changes nothing.
  Value* keys = maximum(kernel, ir.CreateAdd(limit_of(last_row), constant(1)), constant(1));
  Value* last_tile = ir.CreateUDiv(ir.CreateSub(keys, constant(1)), constant(tile_keys));
  if (limits.to_begin) {
    Value* first_key = maximum(kernel, ir.CreateAdd(first_row, limits.to_begin), constant(0));
    place.first_tile = minimum(kernel, ir.CreateUDiv(first_key, constant(tile_keys)), last_tile);
  }
  place.tiles = ir.CreateAdd(last_tile, constant(1));

  Value* scale = kernel.argument_i32(offsetof(Arguments, scale_log2e));
  for (int block = 0; block < spec.blocks; ++block) {
    const int rows = language::wave_shape(kernel).rows;
    Value* first_of_block = ir.CreateAdd(
        first_row,
        ir.CreateMul(ir.CreateAdd(ir.CreateMul(wave, constant(spec.blocks)), constant(block)), constant(rows)));
    place.queries.push_back({
        .query_head = head,
        .batch = batch,
        .query_start = sequence.query_start,
        .query_length = sequence.query_length,
        .scale_log2e = ir.CreateBitCast(attention::positive_scale(kernel, scale), kernel.f32()),
        .query_sign = attention::query_sign(kernel, scale),
        .first_row = first_row,
        .row = ir.CreateAdd(first_of_block, language::row_of_lane(kernel, lane)),
        .lane_group = language::group_of_lane(kernel, lane),
        .lanes_made_anew = takes_all_registers(spec, kernel.target()),
        .first_row_of_wave = first_of_block,
        .limit_offset = limits.to_limit,
        .last_key = last_key,
        .wave_limit = limit_of(first_of_block),
        .begin_offset = limits.to_begin,
        .wave_begin =
            limits.to_begin ? ir.CreateAdd(ir.CreateAdd(first_of_block, constant(rows - 1)), limits.to_begin) : nullptr,
        .diagonal_offset = spec.has(Modifier::alibi) ? limits.diagonal : nullptr,
    });
  }
  return place;
}

}  // namespace wavejit::attention_backward
