// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_latent/emit/workgroup.h"

#include "codegen/language/control.h"
#include "codegen/language/lane_place.h"
#include "codegen/language/synchronize.h"
#include "templates/attention/emit/cache_scale.h"
#include "templates/attention/emit/integers.h"
#include "templates/attention/emit/listed_keys.h"
#include "templates/attention/emit/scale.h"
#include "templates/attention/kernel/canon.h"

namespace wavejit::attention_latent {

using attention::cache_of;
using attention::divided;
using attention::maximum;
using attention::minimum;
using attention::Slice;
using attention::slice_of;
using language::Kernel;
using language::Value;

Value* cache_scale(Kernel& kernel, std::size_t at, Value* batch) {
  llvm::IRBuilder<>& ir = kernel.ir();
  // Not among the arguments that a walk of a list reads at its entry (loads_first.h), which its scalar registers would
  // have no room for.
  Value* arguments = language::opaque(kernel, kernel.argument_address());
  const auto argument = [&](std::size_t offset) {
    return kernel.load_scalar(ir.CreateAdd(arguments, ir.getInt64(at + offset)), kernel.i64());
  };
  Value* numbers = argument(offsetof(CacheScale, numbers));
  Value* stride = argument(offsetof(CacheScale, batch_stride));
  Value* own = ir.CreateAdd(numbers, ir.CreateMul(ir.CreateZExt(batch, kernel.i64()), stride));
  constexpr std::size_t none_at = offsetof(Arguments, cache_scales) + offsetof(CacheScales, none);
  Value* none = ir.CreateAdd(arguments, ir.getInt64(none_at));
  return kernel.load_scalar(ir.CreateSelect(ir.CreateIsNull(numbers), none, own), kernel.f32());
}

Workgroup begin_workgroup(Kernel& kernel, const WalkKernel& spec) {
  llvm::IRBuilder<>& ir = kernel.ir();
  const auto constant = [&](int value) { return kernel.constant(value); };
  const int tile_rows = count_of(spec.rows);

  // Ids are made where they are first asked for: here, where every block can see them.
  Value* wave = kernel.wave();
  Value* lane = kernel.lane();
  Value* batch = kernel.workgroup_x();
  Value* of_list = nullptr;  // the query, where its rows are a workgroup's
  if (spec.listed) {
    Value* queries = kernel.argument_i32(offsetof(Arguments, query_length));
    Value* of_all = batch;
    batch = kernel.uniform(ir.CreateUDiv(of_all, queries));
    of_list = ir.CreateSub(of_all, ir.CreateMul(batch, queries));
  }
  language::leave_if(kernel, ir.CreateICmpUGE(batch, kernel.argument_i32(offsetof(Arguments, batch))));
  const attention::Sequence sequence = attention::sequence_of(kernel, length_fields, batch);
  Value* heads = kernel.argument_i32(offsetof(Arguments, heads));
  Value* multiplier = kernel.argument_i32(offsetof(Arguments, head_multiplier));
  const auto query_of = [&](Value* row) { return divided(kernel, row, multiplier); };

  // Rows of the sequence up to the last that the workgroup may have, and its first.
  Value* rows = nullptr;
  Value* first = nullptr;
  if (spec.listed) {
    language::leave_if(kernel, ir.CreateICmpUGE(of_list, sequence.query_length));
    Value* of_query = ir.CreateMul(of_list, heads);
    rows = ir.CreateAdd(of_query, heads);
    first = ir.CreateAdd(of_query, ir.CreateMul(kernel.workgroup_y(), constant(tile_rows)));
  } else {
    // The grid has the tiles of the longest sequence. The last tile has the most keys where there is a diagonal.
    rows = ir.CreateMul(sequence.query_length, heads);
    Value* row_tiles = ir.CreateUDiv(ir.CreateAdd(rows, constant(tile_rows - 1)), constant(tile_rows));
    Value* tile = kernel.workgroup_y();
    language::leave_if(kernel, ir.CreateICmpUGE(tile, row_tiles));
    if (spec.mask == Mask::causal) tile = ir.CreateSub(ir.CreateSub(row_tiles, constant(1)), tile);
    first = ir.CreateMul(tile, constant(tile_rows));
  }
  const int sharing = waves_of_rows(spec);
  Value* block = sharing == waves ? constant(0) : ir.CreateUDiv(wave, constant(sharing));
  Value* share = sharing == 1 ? constant(0) : ir.CreateAnd(wave, constant(sharing - 1));
  Value* first_of_wave = ir.CreateAdd(first, ir.CreateMul(block, constant(wave_rows)));
  Value* of_lane = ir.CreateAdd(first_of_wave, language::row_of_lane(kernel, lane));
  Value* query = query_of(of_lane);

  Value* last_key = ir.CreateSub(sequence.key_length, constant(1));
  attention::KeyList list = {.entries = nullptr, .count = nullptr};
  Value* named_keys = nullptr;
  if (spec.listed) {
    // Keys are then counted by their place in the list, and what the sequence and the diagonal hide is not named.
    constexpr std::size_t lists = offsetof(Arguments, list);
    named_keys = spec.slots ? attention::named_slots_of(kernel, lists)
                            : attention::named_keys_of(kernel, lists, diagonal_fields, sequence, of_list);
    constexpr attention::QueryFields of_queries = {.query_starts = query_starts_at,
                                                   .query_length = offsetof(Arguments, query_length)};
    list = attention::list_of(kernel, lists,
                              attention::query_of_all(kernel, of_queries, batch, sequence.query_start, of_list));
    last_key = ir.CreateSub(list.count, constant(1));
  }
  Value* to_limit = spec.mask == Mask::causal ? attention::diagonal_offset(kernel, diagonal_fields, sequence) : nullptr;
  const auto limit_of = [&](Value* of_query) {
    return to_limit != nullptr ? minimum(kernel, ir.CreateAdd(of_query, to_limit), last_key) : last_key;
  };
  Value* last_row = minimum(kernel, ir.CreateAdd(first, constant(tile_rows - 1)), ir.CreateSub(rows, constant(1)));
  // One tile even if no row sees a key: wholly hidden it changes nothing, and O = 0 comes out of the same code.
  Value* keys = maximum(kernel, ir.CreateAdd(limit_of(query_of(last_row)), constant(1)), constant(1));
  Value* last_tile = ir.CreateUDiv(ir.CreateSub(keys, constant(1)), constant(attention::tile_keys));
  Value* first_tile = constant(0);
  Value* last_of_runs = nullptr;
  Value* arrivals = nullptr;
  if (spec.merged) {
    Value* beside = kernel.argument_i32(offsetof(Arguments, batch));
    if (spec.listed) beside = ir.CreateMul(beside, kernel.argument_i32(offsetof(Arguments, query_length)));
    arrivals = ir.CreateAdd(ir.CreateMul(kernel.workgroup_y(), beside), kernel.workgroup_x());
    arrivals = language::opaque_in_lanes(kernel, ir.CreateMul(arrivals, constant(waves)));
    last_of_runs = language::opaque_in_lanes(kernel, last_tile);
  }
  if (spec.parts) {
    Value* run_tiles = ir.CreateMul(kernel.argument_i32(offsetof(Arguments, run_chunks)),
                                    constant(spec.chunk_keys() / attention::tile_keys));
    first_tile = ir.CreateMul(kernel.workgroup_z(), run_tiles);
    last_tile = minimum(kernel, last_tile, ir.CreateSub(ir.CreateAdd(first_tile, run_tiles), constant(1)));
    // No row sees a key of the run: nobody reads what would stand in its records.
    language::leave_if(kernel, ir.CreateICmpSGT(first_tile, last_tile));
  }

  Value* scale = kernel.argument_i32(offsetof(Arguments, scale_log2e));
  Value* key_scale = nullptr;
  // With a soft-cap and a list, kernels that widen a cache or merge parts have no scalar register left for the scale.
  const bool in_lanes =
      (spec.widens() || spec.merged) && spec.listed && spec.has(Modifier::softcap) && spec.rows == Rows::r32;
  if (spec.widens()) {
    key_scale = cache_scale(kernel, score_scale_at, batch);
    scale = attention::with_key_scale(kernel, scale, key_scale);
  }
  const int v_bytes = spec.dims_v() * bytes_of(spec.dtype);
  const int rope_bytes = spec.rope_dims() * bytes_of(spec.dtype);
  Value* zero = constant(0);
  const auto keys_of = [&](std::size_t tensor, int row_bytes) {
    if (spec.slots && spec.pages == Pages::dense)
      return attention::pages_of_rows(kernel, tensor_fields(tensor), zero, zero, zero);
    if (spec.listed && spec.pages == Pages::dense)
      return attention::pages_of_rows(kernel, tensor_fields(tensor), batch, zero, sequence.key_start);
    return spec.pages != Pages::dense ? cache_of(kernel, tensor_fields(tensor), zero)
                                      : slice_of(kernel, tensor_fields(tensor), batch, zero, sequence.key_start,
                                                 sequence.key_length, row_bytes);
  };
  const auto rows_of = [&](std::size_t tensor, int row_bytes) {
    return slice_of(kernel, tensor_fields(tensor), batch, zero, sequence.query_start, sequence.query_length, row_bytes,
                    heads);
  };
  const Slice q = rows_of(offsetof(Arguments, q), v_bytes);
  const Slice k = keys_of(offsetof(Arguments, k), spec.bytes_before_rope());
  const Slice q_rope = rope_bytes != 0 ? rows_of(offsetof(Arguments, q_rope), rope_bytes) : q;
  // In rows with exponents those stand in its place.
  const int k_rope_bytes = spec.has_exponents() ? exponent_row_bytes : spec.rope_dims() * bytes_of(spec.rope_type());
  const Slice k_rope = k_rope_bytes != 0 ? keys_of(offsetof(Arguments, k_rope), k_rope_bytes) : k;
  const Slice o = rows_of(offsetof(Arguments, o), v_bytes);
  Value* first_query_of_wave = query_of(first_of_wave);
  Value* positive_scale = attention::positive_scale(kernel, scale);
  if (in_lanes) positive_scale = language::opaque_in_lanes(kernel, positive_scale);
  const attention::QueryTile queries = {
      .query_head = zero,
      .batch = batch,
      .query_start = sequence.query_start,
      .query_length = sequence.query_length,
      .scale_log2e = ir.CreateBitCast(positive_scale, kernel.f32()),
      .query_sign = attention::query_sign(kernel, scale),
      .first_row = query_of(first),
      .row = query,
      .lane_group = language::group_of_lane(kernel, lane),
      .first_row_of_wave = first_query_of_wave,
      .limit_offset = to_limit,
      .last_key = last_key,
      .wave_limit = limit_of(first_query_of_wave),
      .begin_offset = nullptr,
      .wave_begin = nullptr,
      .diagonal_offset = nullptr,
      .head_in_group = ir.CreateSub(of_lane, ir.CreateMul(query, heads)),
      .has_row = ir.CreateICmpULT(of_lane, rows),
      .group = heads,
      .key_scale = key_scale,
      .scales_in_lanes = in_lanes,
  };
  Value* rescale_threshold =
      kernel.argument_f32(offsetof(Arguments, scores) + offsetof(attention::ScoreArguments, rescale_threshold));
  return {queries,
          q,
          q_rope,
          k,
          k_rope,
          o,
          rescale_threshold,
          first_tile,
          ir.CreateAdd(last_tile, constant(1)),
          rows,
          first,
          first_of_wave,
          of_lane,
          share,
          list.entries,
          named_keys,
          last_of_runs,
          arrivals};
}

Workgroup lanes_made_anew(Kernel& kernel, const Workgroup& workgroup) {
  llvm::IRBuilder<>& ir = kernel.ir();
  Value* lane = attention::lane_made_anew(kernel);
  Workgroup anew = workgroup;
  anew.lane_group = language::group_of_lane(kernel, lane);
  anew.row_of_lane = ir.CreateAdd(workgroup.first_of_wave, language::row_of_lane(kernel, lane));
  anew.row = divided(kernel, anew.row_of_lane, kernel.argument_i32(offsetof(Arguments, head_multiplier)));
  anew.head_in_group = ir.CreateSub(anew.row_of_lane, ir.CreateMul(anew.row, workgroup.group));
  anew.has_row = ir.CreateICmpULT(anew.row_of_lane, workgroup.rows);
  return anew;
}

}  // namespace wavejit::attention_latent
