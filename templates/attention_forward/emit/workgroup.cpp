// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/emit/workgroup.h"

#include <algorithm>

#include "codegen/language/control.h"
#include "codegen/language/lane_place.h"
#include "codegen/language/synchronize.h"
#include "templates/attention/emit/cache_scale.h"
#include "templates/attention/emit/integers.h"
#include "templates/attention/emit/listed_keys.h"
#include "templates/attention/emit/scale.h"
#include "templates/attention/emit/sequence.h"
#include "templates/attention/emit/visible_keys.h"
#include "templates/attention_forward/emit/integer_products.h"
#include "templates/attention_forward/emit/list_walk.h"
#include "templates/attention_forward/emit/many_rows.h"
#include "templates/attention_forward/emit/split.h"
#include "templates/attention_forward/kernel/arguments.h"
#include "templates/attention_forward/kernel/cache_arguments.h"
#include "templates/attention_forward/kernel/integer_arguments.h"
#include "templates/attention_forward/kernel/key_list_arguments.h"
#include "templates/attention_forward/kernel/parameters.h"
#include "templates/attention_forward/kernel/query_scale_arguments.h"
#include "templates/attention_forward/kernel/row_limits.h"
#include "templates/attention_forward/kernel/strided_arguments.h"

namespace wavejit::attention_forward {
namespace {

constexpr attention::WindowFields window_fields = {.left = offsetof(Arguments, window_left),
                                                   .right = offsetof(Arguments, window_right)};

using language::Kernel;
using language::Value;

// q head → kv head without a division: see Arguments::kv_head_multiplier.
Value* kv_head_of(Kernel& kernel, Value* query_head) {
  return divided(kernel, query_head, kernel.argument_i32(offsetof(Arguments, kv_head_multiplier)));
}

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

int waves_with_outputs(const ForwardKernel& spec, int rows_of_block) { return spec.waves_with_dims(rows_of_block); }

int output_blocks_of_wave(const ForwardKernel& spec, int rows_of_block) {
  const int blocks = blocks_of_dims(spec.head_dim_v, rows_of_block);
  return spec.chunk_waves == 0 ? blocks : blocks / waves_with_outputs(spec, rows_of_block);
}

namespace {

// Waves that share a chunk, and no words that take their scalar registers.
bool has_scalars_left(const ForwardKernel& spec) {
  return spec.chunk_waves != 0 && !spec.paged && !spec.first_keys && !spec.modified() && !spec.causal_flags &&
         !spec.query_fp32 && spec.mask != Mask::chunked;
}

// Whether O's arguments are loaded where rows end, which costs a wait. Four waves that share a chunk of a window, with
// tiles that pass through registers, have no scalar registers for O during the walk where they look up pages of 64
// dims, or what a bool mask hides.
bool makes_outputs_last(const Kernel& kernel, const ForwardKernel& spec) {
  if (spec.chunk_waves != 4 || spec.split_keys != 0 || !has_first_key(spec.mask)) return false;
  if (lds_layout(kernel.target()) == LdsLayout::lines) return false;
  return spec.bool_mask || (spec.paged && spec.head_dim_v <= 64);
}

// Whether a lane's row and group are made where they are used. One wave that passes tiles of 8 bits through registers has
// none to spare beside scales of two tiles, entries of the block table and a window's first key.
bool makes_lanes_anew(const Kernel& kernel, const ForwardKernel& spec) {
  if (registers_are_short(spec)) return true;
  return spec.pipeline == Pipeline::generic && spec.cache_has_token_scales() && spec.paged &&
         has_first_key(spec.mask) && lds_layout(kernel.target()) == LdsLayout::swizzled;
}

WaveShare share_of_wave(Kernel& kernel, const ForwardKernel& spec) {
  if (spec.chunk_waves == 0) return {};
  llvm::IRBuilder<>& ir = kernel.ir();
  const int block = language::wave_shape(kernel).rows;
  const int owners = waves_with_outputs(spec, block);
  Value* wave = kernel.wave();
  return {.first_dim = ir.CreateMul(wave, kernel.constant(output_blocks_of_wave(spec, block) * block)),
          .has_dims = owners < spec.chunk_waves ? ir.CreateICmpULT(wave, kernel.constant(owners)) : nullptr,
          .leads = ir.CreateICmpEQ(wave, kernel.constant(0))};
}

}  // namespace

Workgroup begin_tile(Kernel& kernel, const ForwardKernel& spec, const WorkgroupPlace& place, Value* query_tile) {
  llvm::IRBuilder<>& ir = kernel.ir();
  const auto constant = [&](int value) { return kernel.constant(value); };
  const int rows_of_wave = language::wave_shape(kernel).rows;
  Value* wave = kernel.wave();
  Value* lane = kernel.lane();
  const Positions positions(kernel, place.group);
  const Sequence& sequence = place.sequence;
  Value* query_length = sequence.query_length;
  Value* key_length = sequence.key_length;
  Value* last_key = place.last_key;
  Value* first = ir.CreateMul(query_tile, constant(spec.tile_queries));
  if (spec.listed) first = ir.CreateAdd(place.first_row, first);
  // Waves that share a chunk have the same rows.
  Value* first_of_wave =
      spec.chunk_waves != 0 ? first : ir.CreateAdd(first, ir.CreateMul(wave, constant(rows_of_wave)));
  Value* of_lane = ir.CreateAdd(first_of_wave, language::row_of_lane(kernel, lane));
  Value* first_row = positions.position(first);
  Value* first_row_of_wave = positions.position(first_of_wave);
  Value* row = positions.position(of_lane);
  Value* head_in_group = spec.packed_heads ? ir.CreateSub(of_lane, positions.rows(row)) : nullptr;
  Value* has_row = spec.packed_heads ? ir.CreateICmpULT(of_lane, place.rows) : nullptr;

  // Without a tile in its lists a workgroup has no key, whatever the sequence has.
  std::optional<WalkPlace> walk;
  if (spec.block_lists) {
    walk = walk_of(kernel, place.batch, place.query_head, first_row, first_row_of_wave);
    key_length = ir.CreateSelect(walk->empty, constant(0), key_length);
    last_key = ir.CreateSelect(walk->empty, constant(-1), last_key);
  }

  // With a window, K and V end after the last key that some row of the sequence sees, as they end after the sequence;
  // values before the first key that some row sees are not multiplied. Lists of blocks and bool masks may show a whole
  // tile, whatever the window says.
  const bool has_bounds = has_first_key(spec.mask) && !spec.block_lists && !spec.bool_mask;

  // The first and the last key that a row sees.
  Value* beyond = spec.causal_flags ? keys_beyond_diagonal(kernel, causal_flags_at, place.batch) : nullptr;
  const auto [offset, to_limit, to_begin, chunks] =
      key_limits(kernel, spec.mask, spec.has(Modifier::alibi), diagonal_fields, window_fields, sequence, beyond);
  const auto begin_of = [&](Value* query_row) {
    return attention::first_of_chunk(kernel, chunks, ir.CreateAdd(query_row, to_begin));
  };
  Value* first_seen = nullptr;
  if (has_bounds) {
    first_seen = maximum(kernel, begin_of(constant(0)), constant(0));
    Value* behind = minimum(kernel, key_length, ir.CreateAdd(query_length, to_limit));
    key_length = maximum(kernel, behind, constant(0));
    last_key = ir.CreateSub(key_length, constant(1));
  }
  const auto limit_of = [&](Value* query_row) {
    return to_limit ? minimum(kernel, ir.CreateAdd(query_row, to_limit), last_key) : last_key;
  };
  Value* last_row = positions.position(
      minimum(kernel, ir.CreateAdd(first, constant(spec.tile_queries - 1)), ir.CreateSub(place.rows, constant(1))));
  // ceil(keys / tile), and one tile even if no row sees a key: fully masked it changes nothing, and O = 0 comes out of
  // the same code.
  Value* keys = maximum(kernel, ir.CreateAdd(limit_of(last_row), constant(1)), constant(1));
  Value* last_tile = ir.CreateUDiv(ir.CreateSub(keys, constant(1)), constant(spec.tile_keys));
  Value* first_tile = constant(0);
  if (to_begin) {
    first_tile = ir.CreateUDiv(maximum(kernel, begin_of(first_row), constant(0)), constant(spec.tile_keys));
    first_tile = minimum(kernel, first_tile, last_tile);
  }
  Value* first_tile_of_all = nullptr;
  Value* last_tile_of_all = nullptr;
  Value* count_of_run = nullptr;
  if (spec.split_keys != 0) {
    Value* keys_to_split = spec.listed ? ir.CreateAdd(last_key, constant(1)) : sequence.key_length;
    const KeyTiles run = tiles_of_run(kernel, place.split, keys_to_split, spec.keys_of_chunk(), spec.merged);
    if (spec.merged) {
      first_tile_of_all = language::opaque_in_lanes(kernel, first_tile);
      last_tile_of_all = language::opaque_in_lanes(kernel, last_tile);
      count_of_run = language::opaque_in_lanes(kernel, run.count);
    }
    first_tile = maximum(kernel, first_tile, run.first);
    last_tile = minimum(kernel, last_tile, run.last);
    // No row sees a key of the run: nobody reads what would stand in its slots.
    language::leave_if(kernel, ir.CreateICmpSGT(first_tile, last_tile));
  }
  Value* wave_limit = limit_of(first_row_of_wave);

  Value* scale = kernel.argument_i32(offsetof(Arguments, scale_log2e));
  Value* key_scale = nullptr;
  Value* value_scale = nullptr;
  if (spec.cache != CacheType::as_queries && !spec.token_scales) {
    key_scale = attention::cache_scale(kernel, cache_scales_at + offsetof(CacheScales, k), place.batch, place.kv_head);
    value_scale =
        attention::cache_scale(kernel, cache_scales_at + offsetof(CacheScales, v), place.batch, place.kv_head);
    scale = attention::with_key_scale(kernel, scale, key_scale);
  }
  if (spec.narrow_queries) {
    const auto scale_at = [&](std::size_t at) {
      return attention::cache_scale(kernel, at, place.batch, place.kv_head);
    };
    scale = attention::with_key_scale(kernel, scale, scale_at(query_scale_at));
    scale = attention::with_key_scale(kernel, scale, scale_at(cache_scales_at + offsetof(CacheScales, k)));
    value_scale = scale_at(cache_scales_at + offsetof(CacheScales, v));
  }
  Value* sign = query_sign(kernel, scale, is_narrow(spec.query_type()) ? signs_of_four : signs_of_two);
  Value* magnitude = positive_scale(kernel, scale);

  const int q_bytes = spec.head_dim_qk * bytes_of(spec.stored_query_type());
  const int k_bytes = spec.head_dim_qk * bytes_of(spec.key_type());
  const int v_bytes = spec.head_dim_v * bytes_of(spec.value_type());
  const int o_bytes = spec.head_dim_v * bytes_of(spec.output_type());
  const auto dims_at = [](std::size_t of_tensor) { return dim_strides_at + of_tensor; };
  const auto keys_of = [&](const TensorFields& fields, int row_bytes) {
    const bool of_k = fields.pointer == k_fields.pointer;
    if (of_k ? spec.trans_k : spec.trans_v)
      return attention::scattered_slice_of(
          kernel, fields, dims_at(of_k ? offsetof(DimStrides, k) : offsetof(DimStrides, v)), place.batch, place.kv_head,
          sequence.key_start, key_length, of_k ? spec.head_dim_qk : spec.head_dim_v,
          bytes_of(of_k ? spec.key_type() : spec.value_type()));
    if (spec.listed && !spec.paged)
      return attention::pages_of_rows(kernel, fields, spec.slots ? constant(0) : place.batch, place.kv_head,
                                      spec.slots ? constant(0) : sequence.key_start);
    return spec.paged ? cache_of(kernel, fields, place.kv_head)
                      : slice_of(kernel, fields, place.batch, place.kv_head, sequence.key_start, key_length, row_bytes);
  };
  const auto rows_of = [&](const TensorFields& fields, int row_bytes) {
    const bool of_q = fields.pointer == q_fields.pointer;
    if (of_q ? spec.trans_q : spec.trans_o)
      return attention::scattered_slice_of(
          kernel, fields, dims_at(of_q ? offsetof(DimStrides, q) : offsetof(DimStrides, o)), place.batch,
          place.query_head, sequence.query_start, query_length, of_q ? spec.head_dim_qk : spec.head_dim_v,
          bytes_of(of_q ? spec.query_type() : spec.output_type()), positions.group());
    return slice_of(kernel, fields, place.batch, place.query_head, sequence.query_start, query_length, row_bytes,
                    positions.group());
  };
  const Slice q = rows_of(q_fields, q_bytes);
  const Slice k = keys_of(k_fields, k_bytes);
  // For waves that share a chunk make_later_slices makes V, and O where there are registers for it. Parts are what a
  // workgroup of split keys leaves: arguments that nobody uses would be waited for.
  const bool shares = spec.chunk_waves != 0;
  const Slice v = shares && !spec.paged ? k : keys_of(v_fields, v_bytes);
  const Slice o = shares && (spec.split_keys != 0 || has_scalars_left(spec) || makes_outputs_last(kernel, spec))
                      ? q
                      : rows_of(o_fields, o_bytes);
  Value* scale_log2e = ir.CreateBitCast(magnitude, kernel.f32());
  Value* rescale_threshold =
      kernel.argument_f32(offsetof(Arguments, scores) + offsetof(ScoreArguments, rescale_threshold));
  Value* tiles = ir.CreateAdd(last_tile, constant(1));
  if (walk) {
    first_tile = constant(0);
    tiles = walk->count;
  }
  QueryTile queries = {
      .query_head = place.query_head,
      .batch = place.batch,
      .query_start = sequence.query_start,
      .query_length = query_length,
      .scale_log2e = scale_log2e,
      .query_sign = sign,
      .first_row = first_row,
      .row = row,
      .lane_group = language::group_of_lane(kernel, lane),
      .lanes_made_anew = makes_lanes_anew(kernel, spec),
      .first_row_of_wave = first_row_of_wave,
      .limit_offset = to_limit,
      .last_key = last_key,
      .wave_limit = wave_limit,
      .begin_offset = to_begin,
      .wave_begin =
          to_begin ? begin_of(positions.position(ir.CreateAdd(first_of_wave, constant(rows_of_wave - 1)))) : nullptr,
      .diagonal_offset = spec.has(Modifier::alibi) ? offset : nullptr,
      .local_chunks = chunks,
      .head_in_group = head_in_group,
      .has_row = has_row,
      .group = positions.group(),
      .first_of_wave = first_of_wave,
      .key_scale = key_scale,
      // Few rows are one block, whichever heads they are of.
      .block = walk             ? walk->block
               : spec.bool_mask ? constant(0)
                                : nullptr,
      // Small workgroups have one list, or two.
      .unseen_tiles = walk && spec.pipeline != Pipeline::generic,
      .has_bits = spec.bool_mask,
      .bias_by_tile = spec.bias_by_tile,
  };
  if (spec.integers) {
    const IntegerScale scales = integer_scale(kernel, spec, queries, place.kv_head);
    const auto with_scales = [&](Value* number) {
      Value* product = ir.CreateFMul(number, scales.q);
      return scales.k == nullptr ? product : ir.CreateFMul(product, scales.k);
    };
    queries.scale_log2e = with_scales(ir.CreateBitCast(scale, kernel.f32()));
    queries.row_scale = scales.k == nullptr ? scales.q : ir.CreateFMul(scales.q, scales.k);
    if (spec.half_scores)
      queries.natural_scale = with_scales(kernel.argument_f32(integer_scales_at + offsetof(IntegerScales, scale)));
  }
  return {queries,
          q,
          k,
          v,
          o,
          sequence.key_start,
          rescale_threshold,
          first_tile,
          tiles,
          walk,
          place.list,
          place.named_keys,
          value_scale,
          place.kv_head,
          key_length,
          first_seen,
          share_of_wave(kernel, spec),
          spec.merged ? language::opaque_in_lanes(kernel, first) : first,
          spec.merged ? language::opaque_in_lanes(kernel, place.rows) : place.rows,
          first_tile_of_all,
          last_tile_of_all,
          count_of_run};
}

RowOfTile row_of_tile(Kernel& kernel, const ForwardKernel& spec, const Workgroup& workgroup, Value* row) {
  llvm::IRBuilder<>& ir = kernel.ir();
  const Positions positions(kernel, spec.packed_heads ? workgroup.group : nullptr);
  Value* of_all = ir.CreateAdd(workgroup.first_of_tile, row);
  Value* position = positions.position(of_all);
  return {.position = position,
          .head = spec.packed_heads ? ir.CreateSub(of_all, positions.rows(position)) : nullptr,
          .exists = ir.CreateICmpULT(of_all, workgroup.rows)};
}

Value* begin_of_query_row(Kernel& kernel, const ForwardKernel& spec, const Workgroup& workgroup, Value* row) {
  llvm::IRBuilder<>& ir = kernel.ir();
  Value* of_tile = ir.CreateICmpULT(row, kernel.constant(language::wave_shape(kernel).rows));
  const RowOfTile place = row_of_tile(kernel, spec, workgroup, row);
  Value* offset = ir.CreateMul(place.position, workgroup.q.row_stride);
  if (place.head != nullptr) offset = ir.CreateAdd(offset, ir.CreateMul(place.head, workgroup.q.head_stride));
  return ir.CreateSelect(ir.CreateAnd(of_tile, place.exists), offset, ir.getInt32(language::far_outside));
}

void ask_for_walk(Kernel& kernel, const ForwardKernel& spec, const Workgroup& workgroup) {
  language::Values asked = {workgroup.scale_log2e, workgroup.rescale_threshold};
  if (spec.split_keys != 0) {
    asked.push_back(kernel.argument_i64(offsetof(Arguments, workspace)));
    asked.push_back(kernel.argument_i32(offsetof(Arguments, query_heads)));
  }
  language::pin_scalars(kernel, asked);
}

namespace {

// What the backend would otherwise load into registers that others of the first arguments have come to, or where it is
// used, once those have arrived: a wait more in front of the first request of memory.
void ask_for_first_arguments(Kernel& kernel, const ForwardKernel& spec) {
  language::Values asked = {
      kernel.argument_i32(offsetof(Arguments, o_row_stride)), kernel.argument_i32(offsetof(Arguments, scale_log2e)),
      kernel.argument_i32(offsetof(Arguments, scores) + offsetof(ScoreArguments, rescale_threshold))};
  if (spec.split_keys != 0) {
    asked.push_back(kernel.argument_i64(offsetof(Arguments, workspace)));
    asked.push_back(kernel.argument_i32(offsetof(Arguments, query_heads)));
  } else {
    for (const std::size_t field :
         {o_fields.pointer, o_fields.batch_stride, o_fields.head_stride, offsetof(Arguments, sink)})
      asked.push_back(kernel.argument_i64(field));
    asked.push_back(kernel.argument_i32(o_fields.head_stride));
  }
  language::pin_scalars(kernel, asked);
}

}  // namespace

void make_last_outputs(Kernel& kernel, const ForwardKernel& spec, Workgroup& workgroup) {
  if (!makes_outputs_last(kernel, spec)) return;
  const auto hidden = [&](Value* value) { return language::opaque(kernel, value); };
  workgroup.o = slice_of(kernel, o_fields, hidden(workgroup.batch), hidden(workgroup.query_head), workgroup.query_start,
                         workgroup.query_length, spec.head_dim_v * bytes_of(spec.output_type()), workgroup.group);
}

void make_later_slices(Kernel& kernel, const ForwardKernel& spec, Workgroup& workgroup) {
  Value* batch = language::opaque(kernel, workgroup.batch);
  if (!spec.paged) {
    workgroup.v = slice_of(kernel, v_fields, batch, language::opaque(kernel, workgroup.kv_head), workgroup.first_slot,
                           workgroup.key_length, spec.head_dim_v * bytes_of(spec.value_type()));
    workgroup.v.row_stride = language::opaque(kernel, workgroup.v.row_stride);
  }
  if (spec.split_keys != 0 || !has_scalars_left(spec)) return;
  workgroup.o = slice_of(kernel, o_fields, batch, workgroup.query_head, workgroup.query_start, workgroup.query_length,
                         spec.head_dim_v * bytes_of(spec.output_type()), workgroup.group);
  // Here, and not where rows end.
  language::pin_scalars(kernel, {workgroup.o.buffer.dwords(), kernel.argument_i64(offsetof(Arguments, sink))});
}

Workgroup begin_workgroup(Kernel& kernel, const ForwardKernel& spec) {
  if (has_scalars_left(spec)) ask_for_first_arguments(kernel, spec);
  const WorkgroupPlace place = find_place(kernel, spec);
  return begin_tile(kernel, spec, place, place.query_tile);
}

}  // namespace wavejit::attention_forward
