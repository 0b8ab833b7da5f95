// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a workgroup has of one query tile, step by step: its rows, the keys that they see, the tiles of these keys, scales,
// and slices of Q, K, V and O.
#include <optional>

#include "codegen/language/control.h"
#include "codegen/language/lane_place.h"
#include "codegen/language/synchronize.h"
#include "templates/attention/emit/cache_scale.h"
#include "templates/attention/emit/scale.h"
#include "templates/attention/emit/sequence.h"
#include "templates/attention/emit/visible_keys.h"
#include "templates/attention_forward/emit/integer_products.h"
#include "templates/attention_forward/emit/late_slices.h"
#include "templates/attention_forward/emit/positions.h"
#include "templates/attention_forward/emit/split.h"
#include "templates/attention_forward/emit/walks/list_walk.h"
#include "templates/attention_forward/emit/workgroup.h"
#include "templates/attention_forward/kernel/arguments.h"
#include "templates/attention_forward/kernel/cache_arguments.h"
#include "templates/attention_forward/kernel/flag_arguments.h"
#include "templates/attention_forward/kernel/integer_arguments.h"
#include "templates/attention_forward/kernel/parameters.h"
#include "templates/attention_forward/kernel/query_scale_arguments.h"
#include "templates/attention_forward/kernel/strided_arguments.h"

namespace wavejit::attention_forward {
namespace {

using language::Kernel;
using language::Value;

constexpr attention::WindowFields window_fields = {.left = offsetof(Arguments, window_left),
                                                   .right = offsetof(Arguments, window_right)};

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

// The steps of begin_tile, in the order of the instructions that they make.
class TileStart {
 public:
  TileStart(Kernel& kernel, const ForwardKernel& spec, const WorkgroupPlace& place)
      : kernel_(kernel),
        spec_(spec),
        place_(place),
        sequence_(place.sequence),
        positions_(kernel, place.group),
        key_length_(place.sequence.key_length),
        last_key_(place.last_key) {}

  Workgroup begin(Value* query_tile) {
    find_rows(query_tile);
    find_walk();
    find_limits();
    find_tiles();
    if (spec_.split_keys != 0) stay_in_run();
    Value* wave_limit = limit_of(first_row_of_wave_);
    find_scales();
    return assembled(wave_limit);
  }

 private:
  llvm::IRBuilder<>& ir() const { return kernel_.ir(); }
  Value* constant(int value) const { return kernel_.constant(value); }

  void find_rows(Value* query_tile) {
    first_ = ir().CreateMul(query_tile, constant(spec_.tile_queries));
    if (spec_.listed) first_ = ir().CreateAdd(place_.first_row, first_);
    // Waves that share a chunk have the same rows.
    first_of_wave_ = spec_.chunk_waves != 0
                         ? first_
                         : ir().CreateAdd(first_, ir().CreateMul(kernel_.wave(), constant(rows_of_wave_)));
    Value* of_lane = ir().CreateAdd(first_of_wave_, language::row_of_lane(kernel_, kernel_.lane()));
    first_row_ = positions_.position(first_);
    first_row_of_wave_ = positions_.position(first_of_wave_);
    row_ = positions_.position(of_lane);
    if (!spec_.packed_heads) return;
    head_in_group_ = ir().CreateSub(of_lane, positions_.rows(row_));
    has_row_ = ir().CreateICmpULT(of_lane, place_.rows);
  }

  // Without a tile in its lists a workgroup has no key, whatever the sequence has.
  void find_walk() {
    if (!spec_.block_lists) return;
    walk_ = walk_of(kernel_, place_.batch, place_.query_head, first_row_, first_row_of_wave_);
    key_length_ = ir().CreateSelect(walk_->empty, constant(0), key_length_);
    last_key_ = ir().CreateSelect(walk_->empty, constant(-1), last_key_);
  }

  // The first and the last key that a row sees. With a window, K and V end after the last key that some row of the sequence
  // sees, as they end after the sequence; values before the first key that some row sees are not multiplied. Lists of
  // blocks and bool masks may show a whole tile, whatever the window says.
  void find_limits() {
    Value* beyond = spec_.causal_flags ? keys_beyond_diagonal(kernel_, causal_flags_at, place_.batch) : nullptr;
    limits_ =
        key_limits(kernel_, spec_.mask, spec_.has(Modifier::alibi), diagonal_fields, window_fields, sequence_, beyond);
    if (!has_first_key(spec_.mask) || spec_.block_lists || spec_.bool_mask) return;
    first_seen_ = maximum(kernel_, begin_of(constant(0)), constant(0));
    Value* behind =
        minimum(kernel_, key_length_,
                attention::end_key_at(kernel_, limits_.kind, ir().CreateAdd(sequence_.query_length, limits_.to_limit)));
    key_length_ = maximum(kernel_, behind, constant(0));
    last_key_ = ir().CreateSub(key_length_, constant(1));
  }
  Value* begin_of(Value* query_row) const {
    return attention::first_key_at(kernel_, limits_.kind, ir().CreateAdd(query_row, limits_.to_begin));
  }
  Value* limit_of(Value* query_row) const {
    if (limits_.to_limit == nullptr) return last_key_;
    Value* last = attention::last_key_at(kernel_, limits_.kind, ir().CreateAdd(query_row, limits_.to_limit));
    return minimum(kernel_, last, last_key_);
  }

  // ceil(keys / tile), and one tile even if no row sees a key: fully masked it changes nothing, and O = 0 comes out of
  // the same code.
  void find_tiles() {
    Value* end = ir().CreateAdd(first_, constant(spec_.tile_queries - 1));
    Value* last_row = positions_.position(minimum(kernel_, end, ir().CreateSub(place_.rows, constant(1))));
    Value* keys = maximum(kernel_, ir().CreateAdd(limit_of(last_row), constant(1)), constant(1));
    last_tile_ = ir().CreateUDiv(ir().CreateSub(keys, constant(1)), constant(spec_.tile_keys));
    first_tile_ = constant(0);
    if (limits_.to_begin == nullptr) return;
    first_tile_ = ir().CreateUDiv(maximum(kernel_, begin_of(first_row_), constant(0)), constant(spec_.tile_keys));
    first_tile_ = minimum(kernel_, first_tile_, last_tile_);
  }

  // Ends the workgroup if no row sees a key of its run: nobody reads what would stand in the run's slots.
  void stay_in_run() {
    Value* keys_to_split = spec_.listed ? ir().CreateAdd(last_key_, constant(1)) : sequence_.key_length;
    const KeyTiles run = tiles_of_run(kernel_, place_.split, keys_to_split, spec_.keys_of_chunk(), spec_.merged);
    if (spec_.merged) {
      first_tile_of_all_ = language::opaque_in_lanes(kernel_, first_tile_);
      last_tile_of_all_ = language::opaque_in_lanes(kernel_, last_tile_);
      tiles_of_run_ = language::opaque_in_lanes(kernel_, run.count);
    }
    first_tile_ = maximum(kernel_, first_tile_, run.first);
    last_tile_ = minimum(kernel_, last_tile_, run.last);
    language::leave_if(kernel_, ir().CreateICmpSGT(first_tile_, last_tile_));
  }

  void find_scales() {
    scale_ = kernel_.argument_i32(offsetof(Arguments, scale_log2e));
    const auto scale_at = [&](std::size_t at) {
      return attention::cache_scale(kernel_, at, place_.batch, place_.kv_head);
    };
    constexpr std::size_t of_k = cache_scales_at + offsetof(CacheScales, k);
    constexpr std::size_t of_v = cache_scales_at + offsetof(CacheScales, v);
    if (spec_.cache != CacheType::as_queries && !spec_.token_scales) {
      key_scale_ = scale_at(of_k);
      value_scale_ = scale_at(of_v);
      scale_ = attention::with_key_scale(kernel_, scale_, key_scale_);
    }
    if (spec_.narrow_queries) {
      scale_ = attention::with_key_scale(kernel_, scale_, scale_at(query_scale_at));
      scale_ = attention::with_key_scale(kernel_, scale_, scale_at(of_k));
      value_scale_ = scale_at(of_v);
    }
    sign_ = query_sign(kernel_, scale_, is_narrow(spec_.query_type()) ? signs_of_four : signs_of_two);
    magnitude_ = positive_scale(kernel_, scale_);
  }

  // K or V.
  Slice keys_of(const TensorFields& fields) const {
    const bool of_k = fields.pointer == k_fields.pointer;
    const int dims = of_k ? spec_.head_dim_qk : spec_.head_dim_v;
    const int bytes = bytes_of(of_k ? spec_.key_type() : spec_.value_type());
    if (of_k ? spec_.trans_k : spec_.trans_v)
      return attention::scattered_slice_of(kernel_, fields,
                                           dim_strides_at + (of_k ? offsetof(DimStrides, k) : offsetof(DimStrides, v)),
                                           place_.batch, place_.kv_head, sequence_.key_start, key_length_, dims, bytes);
    if (spec_.listed && !spec_.paged)
      return attention::pages_of_rows(kernel_, fields, spec_.slots ? constant(0) : place_.batch, place_.kv_head,
                                      spec_.slots ? constant(0) : sequence_.key_start);
    if (spec_.paged) return cache_of(kernel_, fields, place_.kv_head);
    return slice_of(kernel_, fields, place_.batch, place_.kv_head, sequence_.key_start, key_length_, dims * bytes);
  }
  // Q or O.
  Slice rows_of(const TensorFields& fields) const {
    const bool of_q = fields.pointer == q_fields.pointer;
    const int dims = of_q ? spec_.head_dim_qk : spec_.head_dim_v;
    if (of_q ? spec_.trans_q : spec_.trans_o)
      return attention::scattered_slice_of(
          kernel_, fields, dim_strides_at + (of_q ? offsetof(DimStrides, q) : offsetof(DimStrides, o)), place_.batch,
          place_.query_head, sequence_.query_start, sequence_.query_length, dims,
          bytes_of(of_q ? spec_.query_type() : spec_.output_type()), positions_.group());
    const int bytes = bytes_of(of_q ? spec_.stored_query_type() : spec_.output_type());
    return slice_of(kernel_, fields, place_.batch, place_.query_head, sequence_.query_start, sequence_.query_length,
                    dims * bytes, positions_.group());
  }

  // All but what integers add (add_row_scales).
  QueryTile query_tile(Value* scale_log2e, Value* wave_limit) const {
    return {
        .query_head = place_.query_head,
        .batch = place_.batch,
        .query_start = sequence_.query_start,
        .query_length = sequence_.query_length,
        .scale_log2e = scale_log2e,
        .query_sign = sign_,
        .first_row = first_row_,
        .row = row_,
        .lane_group = language::group_of_lane(kernel_, kernel_.lane()),
        .lanes_made_anew = makes_lanes_anew(kernel_, spec_),
        .first_row_of_wave = first_row_of_wave_,
        .limit_offset = limits_.to_limit,
        .last_key = last_key_,
        .wave_limit = wave_limit,
        .begin_offset = limits_.to_begin,
        .wave_begin = limits_.to_begin
                          ? begin_of(positions_.position(ir().CreateAdd(first_of_wave_, constant(rows_of_wave_ - 1))))
                          : nullptr,
        .diagonal_offset = spec_.has(Modifier::alibi) ? limits_.diagonal : nullptr,
        .kind = limits_.kind,
        .head_in_group = head_in_group_,
        .has_row = has_row_,
        .group = positions_.group(),
        .first_of_wave = first_of_wave_,
        .key_scale = key_scale_,
        // Few rows are one block, whichever heads they are of.
        .block = walk_             ? walk_->block
                 : spec_.bool_mask ? constant(0)
                                   : nullptr,
        // Small workgroups have one list, or two.
        .unseen_tiles = walk_ && spec_.pipeline != Pipeline::generic,
        .has_bits = spec_.bool_mask,
        .bias_by_tile = spec_.bias_by_tile,
    };
  }

  // Integers have a scale a row.
  void add_row_scales(QueryTile& queries) const {
    const IntegerScale scales = integer_scale(kernel_, spec_, queries, place_.kv_head);
    const auto with_scales = [&](Value* number) {
      Value* product = ir().CreateFMul(number, scales.q);
      return scales.k == nullptr ? product : ir().CreateFMul(product, scales.k);
    };
    queries.scale_log2e = with_scales(ir().CreateBitCast(scale_, kernel_.f32()));
    queries.row_scale = scales.k == nullptr ? scales.q : ir().CreateFMul(scales.q, scales.k);
    if (spec_.half_scores)
      queries.natural_scale = with_scales(kernel_.argument_f32(integer_scales_at + offsetof(IntegerScales, scale)));
  }

  // For waves that share a chunk make_later_slices makes V, and O where there are registers for it. Parts are what a
  // workgroup of split keys leaves: arguments that nobody uses would be waited for.
  Workgroup assembled(Value* wave_limit) const {
    const Slice q = rows_of(q_fields);
    const Slice k = keys_of(k_fields);
    const bool shares = spec_.chunk_waves != 0;
    const bool has_later_output =
        shares && (spec_.split_keys != 0 || has_scalars_left(spec_) || makes_outputs_last(kernel_, spec_));
    const Slice v = shares && !spec_.paged ? k : keys_of(v_fields);
    const Slice o = has_later_output ? q : rows_of(o_fields);
    Value* scale_log2e = ir().CreateBitCast(magnitude_, kernel_.f32());
    Value* rescale_threshold =
        kernel_.argument_f32(offsetof(Arguments, scores) + offsetof(ScoreArguments, rescale_threshold));
    Value* tiles = ir().CreateAdd(last_tile_, constant(1));
    Workgroup workgroup{query_tile(scale_log2e, wave_limit), q, k, v, o};
    if (spec_.integers) add_row_scales(workgroup);
    workgroup.first_slot = sequence_.key_start;
    workgroup.rescale_threshold = rescale_threshold;
    workgroup.first_tile = walk_ ? constant(0) : first_tile_;
    workgroup.tiles = walk_ ? walk_->count : tiles;
    workgroup.walk = walk_;
    workgroup.list = place_.list;
    workgroup.named_keys = place_.named_keys;
    workgroup.value_scale = value_scale_;
    workgroup.kv_head = place_.kv_head;
    workgroup.key_length = key_length_;
    workgroup.first_seen = first_seen_;
    workgroup.share = share_of_wave(kernel_, spec_);
    workgroup.first_of_tile = spec_.merged ? language::opaque_in_lanes(kernel_, first_) : first_;
    workgroup.rows = spec_.merged ? language::opaque_in_lanes(kernel_, place_.rows) : place_.rows;
    workgroup.first_tile_of_all = first_tile_of_all_;
    workgroup.last_tile_of_all = last_tile_of_all_;
    workgroup.tiles_of_run = tiles_of_run_;
    return workgroup;
  }

  Kernel& kernel_;
  const ForwardKernel& spec_;
  const WorkgroupPlace& place_;
  const Sequence& sequence_;
  const Positions positions_;
  const int rows_of_wave_ = language::wave_shape(kernel_).rows;

  // Rows, and their positions. With packed heads `first_` and `first_of_wave_` are rows of all heads of the group.
  Value* first_ = nullptr;
  Value* first_of_wave_ = nullptr;
  Value* first_row_ = nullptr;
  Value* first_row_of_wave_ = nullptr;
  Value* row_ = nullptr;
  Value* head_in_group_ = nullptr;
  Value* has_row_ = nullptr;
  // Keys.
  std::optional<WalkPlace> walk_;
  attention::KeyLimits limits_{};
  Value* key_length_;
  Value* last_key_;
  Value* first_seen_ = nullptr;
  Value* first_tile_ = nullptr;
  Value* last_tile_ = nullptr;
  Value* first_tile_of_all_ = nullptr;
  Value* last_tile_of_all_ = nullptr;
  Value* tiles_of_run_ = nullptr;
  // Scales.
  Value* scale_ = nullptr;
  Value* sign_ = nullptr;
  Value* magnitude_ = nullptr;
  Value* key_scale_ = nullptr;
  Value* value_scale_ = nullptr;
};

}  // namespace

Workgroup begin_tile(Kernel& kernel, const ForwardKernel& spec, const WorkgroupPlace& place, Value* query_tile) {
  return TileStart(kernel, spec, place).begin(query_tile);
}

}  // namespace wavejit::attention_forward
