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

namespace {

// The steps of begin_workgroup, in the order of the instructions that they make.
class WorkgroupStart {
 public:
  WorkgroupStart(Kernel& kernel, const WalkKernel& spec) : kernel_(kernel), spec_(spec) {
    // Ids are made where they are first asked for: here, where every block can see them.
    static_cast<void>(kernel.wave());
    static_cast<void>(kernel.lane());
    batch_ = kernel.workgroup_x();
  }

  Workgroup begin() {
    find_sequence();
    find_rows();
    find_rows_of_wave();
    if (spec_.listed) find_list();
    find_tiles();
    if (spec_.merged) keep_for_merge();
    if (spec_.parts) stay_in_run();
    return assembled();
  }

 private:
  llvm::IRBuilder<>& ir() const { return kernel_.ir(); }
  Value* constant(int value) const { return kernel_.constant(value); }
  Value* query_of(Value* row) const { return divided(kernel_, row, multiplier_); }

  // Ends workgroups beyond the sequences.
  void find_sequence() {
    if (spec_.listed) {
      Value* queries = kernel_.argument_i32(offsetof(Arguments, query_length));
      Value* of_all = batch_;
      batch_ = kernel_.uniform(ir().CreateUDiv(of_all, queries));
      of_list_ = ir().CreateSub(of_all, ir().CreateMul(batch_, queries));
    }
    language::leave_if(kernel_, ir().CreateICmpUGE(batch_, kernel_.argument_i32(offsetof(Arguments, batch))));
    sequence_ = attention::sequence_of(kernel_, length_fields, batch_);
    heads_ = kernel_.argument_i32(offsetof(Arguments, heads));
    multiplier_ = kernel_.argument_i32(offsetof(Arguments, head_multiplier));
  }

  // Rows of the sequence up to the last that the workgroup may have, and its first. Ends workgroups that have none.
  void find_rows() {
    if (spec_.listed) {
      language::leave_if(kernel_, ir().CreateICmpUGE(of_list_, sequence_.query_length));
      Value* of_query = ir().CreateMul(of_list_, heads_);
      rows_ = ir().CreateAdd(of_query, heads_);
      first_ = ir().CreateAdd(of_query, ir().CreateMul(kernel_.workgroup_y(), constant(tile_rows_)));
      return;
    }
    // The grid has the tiles of the longest sequence. The last tile has the most keys where there is a diagonal.
    rows_ = ir().CreateMul(sequence_.query_length, heads_);
    Value* row_tiles = ir().CreateUDiv(ir().CreateAdd(rows_, constant(tile_rows_ - 1)), constant(tile_rows_));
    Value* tile = kernel_.workgroup_y();
    language::leave_if(kernel_, ir().CreateICmpUGE(tile, row_tiles));
    if (spec_.mask == Mask::causal) tile = ir().CreateSub(ir().CreateSub(row_tiles, constant(1)), tile);
    first_ = ir().CreateMul(tile, constant(tile_rows_));
  }

  void find_rows_of_wave() {
    Value* wave = kernel_.wave();
    const int sharing = waves_of_rows(spec_);
    Value* block = sharing == waves ? constant(0) : ir().CreateUDiv(wave, constant(sharing));
    share_ = sharing == 1 ? constant(0) : ir().CreateAnd(wave, constant(sharing - 1));
    first_of_wave_ = ir().CreateAdd(first_, ir().CreateMul(block, constant(wave_rows)));
    of_lane_ = ir().CreateAdd(first_of_wave_, language::row_of_lane(kernel_, kernel_.lane()));
    query_ = query_of(of_lane_);
    last_key_ = ir().CreateSub(sequence_.key_length, constant(1));
  }

  // Keys are then counted by their place in the list, and what the sequence and the diagonal hide is not named.
  void find_list() {
    constexpr std::size_t lists = offsetof(Arguments, list);
    named_keys_ = spec_.slots ? attention::named_slots_of(kernel_, lists)
                              : attention::named_keys_of(kernel_, lists, diagonal_fields, sequence_, of_list_);
    constexpr attention::QueryFields of_queries = {.query_starts = query_starts_at,
                                                   .query_length = offsetof(Arguments, query_length)};
    Value* query = attention::query_of_all(kernel_, of_queries, batch_, sequence_.query_start, of_list_);
    list_ = attention::list_of(kernel_, lists, query);
    last_key_ = ir().CreateSub(list_.count, constant(1));
  }

  Value* limit_of(Value* query) const {
    return to_limit_ != nullptr ? minimum(kernel_, ir().CreateAdd(query, to_limit_), last_key_) : last_key_;
  }

  // One tile even if no row sees a key: wholly hidden it changes nothing, and O = 0 comes out of the same code.
  void find_tiles() {
    if (spec_.mask == Mask::causal) to_limit_ = attention::diagonal_offset(kernel_, diagonal_fields, sequence_);
    Value* end = ir().CreateAdd(first_, constant(tile_rows_ - 1));
    Value* last_row = minimum(kernel_, end, ir().CreateSub(rows_, constant(1)));
    Value* keys = maximum(kernel_, ir().CreateAdd(limit_of(query_of(last_row)), constant(1)), constant(1));
    last_tile_ = ir().CreateUDiv(ir().CreateSub(keys, constant(1)), constant(attention::tile_keys));
    first_tile_ = constant(0);
  }

  void keep_for_merge() {
    Value* beside = kernel_.argument_i32(offsetof(Arguments, batch));
    if (spec_.listed) beside = ir().CreateMul(beside, kernel_.argument_i32(offsetof(Arguments, query_length)));
    Value* number = ir().CreateAdd(ir().CreateMul(kernel_.workgroup_y(), beside), kernel_.workgroup_x());
    arrivals_ = language::opaque_in_lanes(kernel_, ir().CreateMul(number, constant(waves)));
    last_of_runs_ = language::opaque_in_lanes(kernel_, last_tile_);
  }

  // Ends the workgroup if no row sees a key of its run: nobody reads what would stand in the run's records.
  void stay_in_run() {
    Value* run_tiles = ir().CreateMul(kernel_.argument_i32(offsetof(Arguments, run_chunks)),
                                      constant(spec_.chunk_keys() / attention::tile_keys));
    first_tile_ = ir().CreateMul(kernel_.workgroup_z(), run_tiles);
    Value* end = ir().CreateAdd(first_tile_, run_tiles);
    last_tile_ = minimum(kernel_, last_tile_, ir().CreateSub(end, constant(1)));
    language::leave_if(kernel_, ir().CreateICmpSGT(first_tile_, last_tile_));
  }

  // A part of the cache, and a part of Q or O.
  Slice keys_of(std::size_t tensor, int row_bytes) const {
    Value* zero = constant(0);
    if (spec_.slots && spec_.pages == Pages::dense)
      return attention::pages_of_rows(kernel_, tensor_fields(tensor), zero, zero, zero);
    if (spec_.listed && spec_.pages == Pages::dense)
      return attention::pages_of_rows(kernel_, tensor_fields(tensor), batch_, zero, sequence_.key_start);
    return spec_.pages != Pages::dense ? cache_of(kernel_, tensor_fields(tensor), zero)
                                       : slice_of(kernel_, tensor_fields(tensor), batch_, zero, sequence_.key_start,
                                                  sequence_.key_length, row_bytes);
  }
  Slice rows_of(std::size_t tensor, int row_bytes) const {
    return slice_of(kernel_, tensor_fields(tensor), batch_, constant(0), sequence_.query_start, sequence_.query_length,
                    row_bytes, heads_);
  }

  // `scale`: as the arguments have it, with the scale of keys.
  attention::QueryTile query_tile(Value* scale, Value* key_scale) const {
    Value* first_query_of_wave = query_of(first_of_wave_);
    Value* positive_scale = attention::positive_scale(kernel_, scale);
    // With a soft-cap and a list, kernels that widen a cache or merge parts have no scalar register left for the scale.
    const bool in_lanes =
        (spec_.widens() || spec_.merged) && spec_.listed && spec_.has(Modifier::softcap) && spec_.rows == Rows::r32;
    if (in_lanes) positive_scale = language::opaque_in_lanes(kernel_, positive_scale);
    return {
        .query_head = constant(0),
        .batch = batch_,
        .query_start = sequence_.query_start,
        .query_length = sequence_.query_length,
        .scale_log2e = ir().CreateBitCast(positive_scale, kernel_.f32()),
        .query_sign = attention::query_sign(kernel_, scale),
        .first_row = query_of(first_),
        .row = query_,
        .lane_group = language::group_of_lane(kernel_, kernel_.lane()),
        .first_row_of_wave = first_query_of_wave,
        .limit_offset = to_limit_,
        .last_key = last_key_,
        .wave_limit = limit_of(first_query_of_wave),
        .begin_offset = nullptr,
        .wave_begin = nullptr,
        .diagonal_offset = nullptr,
        .head_in_group = ir().CreateSub(of_lane_, ir().CreateMul(query_, heads_)),
        .has_row = ir().CreateICmpULT(of_lane_, rows_),
        .group = heads_,
        .key_scale = key_scale,
        .scales_in_lanes = in_lanes,
    };
  }

  Workgroup assembled() const {
    Value* scale = kernel_.argument_i32(offsetof(Arguments, scale_log2e));
    Value* key_scale = nullptr;
    if (spec_.widens()) {
      key_scale = cache_scale(kernel_, score_scale_at, batch_);
      scale = attention::with_key_scale(kernel_, scale, key_scale);
    }
    const int v_bytes = spec_.dims_v() * bytes_of(spec_.dtype);
    const int rope_bytes = spec_.rope_dims() * bytes_of(spec_.dtype);
    // In rows with exponents those stand in the rope's place.
    const int k_rope_bytes =
        spec_.has_exponents() ? exponent_row_bytes : spec_.rope_dims() * bytes_of(spec_.rope_type());
    const Slice q = rows_of(offsetof(Arguments, q), v_bytes);
    const Slice k = keys_of(offsetof(Arguments, k), spec_.bytes_before_rope());
    const Slice q_rope = rope_bytes != 0 ? rows_of(offsetof(Arguments, q_rope), rope_bytes) : q;
    const Slice k_rope = k_rope_bytes != 0 ? keys_of(offsetof(Arguments, k_rope), k_rope_bytes) : k;
    const Slice o = rows_of(offsetof(Arguments, o), v_bytes);
    Workgroup workgroup{query_tile(scale, key_scale), q, q_rope, k, k_rope, o};
    workgroup.rescale_threshold =
        kernel_.argument_f32(offsetof(Arguments, scores) + offsetof(attention::ScoreArguments, rescale_threshold));
    workgroup.first_tile = first_tile_;
    workgroup.tiles = ir().CreateAdd(last_tile_, constant(1));
    workgroup.rows = rows_;
    workgroup.first_of_tile = first_;
    workgroup.first_of_wave = first_of_wave_;
    workgroup.row_of_lane = of_lane_;
    workgroup.share = share_;
    workgroup.list = list_.entries;
    workgroup.named_keys = named_keys_;
    workgroup.last_of_runs = last_of_runs_;
    workgroup.arrivals = arrivals_;
    return workgroup;
  }

  Kernel& kernel_;
  const WalkKernel& spec_;
  const int tile_rows_ = count_of(spec_.rows);
  attention::Sequence sequence_{};
  Value* batch_ = nullptr;
  Value* of_list_ = nullptr;  // the query, where its rows are a workgroup's
  Value* heads_ = nullptr;
  Value* multiplier_ = nullptr;
  // Rows of all heads.
  Value* rows_ = nullptr;
  Value* first_ = nullptr;
  Value* first_of_wave_ = nullptr;
  Value* of_lane_ = nullptr;
  Value* query_ = nullptr;
  Value* share_ = nullptr;
  // Keys.
  attention::KeyList list_ = {.entries = nullptr, .count = nullptr};
  Value* named_keys_ = nullptr;
  Value* last_key_ = nullptr;
  Value* to_limit_ = nullptr;
  Value* first_tile_ = nullptr;
  Value* last_tile_ = nullptr;
  Value* last_of_runs_ = nullptr;
  Value* arrivals_ = nullptr;
};

}  // namespace

Workgroup begin_workgroup(Kernel& kernel, const WalkKernel& spec) { return WorkgroupStart(kernel, spec).begin(); }

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
