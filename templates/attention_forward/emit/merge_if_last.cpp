// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/emit/merge_if_last.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <span>

#include "codegen/language/carried.h"
#include "codegen/language/control.h"
#include "codegen/language/convert.h"
#include "codegen/language/cross_lane.h"
#include "codegen/language/lane_place.h"
#include "codegen/language/synchronize.h"
#include "templates/attention/emit/arrivals.h"
#include "templates/attention/emit/integers.h"
#include "templates/attention/emit/output_bytes.h"
#include "templates/attention/emit/parts_chain.h"
#include "templates/attention/emit/parts_in_lanes.h"
#include "templates/attention_forward/emit/combine/workspace.h"
#include "templates/attention_forward/emit/output.h"
#include "templates/attention_forward/emit/split.h"
#include "templates/attention_forward/kernel/arguments.h"
#include "templates/attention_forward/kernel/arrival_arguments.h"
#include "templates/attention_forward/kernel/combine/parameters.h"
#include "templates/attention_forward/kernel/output_scale_arguments.h"

namespace wavejit::attention_forward {
namespace {

using attention::PartsChain;
using language::Buffer;
using language::Element;
using language::Kernel;
using language::Likelihood;
using language::Value;
using language::Values;

// Lanes that point here read 0 and store nothing.
constexpr std::uint32_t outside = 0x80000000;

// A wave merges rows side by side, as many as fit: a lane has dims of one of them, in pieces of 16 bytes that the
// row's lanes have in turn, so that each load of a row is a run of memory.
class MergeOfRows {
 public:
  MergeOfRows(Kernel& kernel, const ForwardKernel& spec, const Workgroup& workgroup, const language::Softmax& softmax)
      : kernel_(kernel),
        ir_(kernel.ir()),
        spec_(spec),
        workgroup_(workgroup),
        softmax_(softmax),
        slots_(attention_combine::slots_of(kernel, kernel.argument_i32(offsetof(Arguments, key_length)))),
        records_(records_of_tile(kernel, spec, workgroup)),
        o_(attention::slice_of(kernel, o_fields, workgroup.batch, workgroup.query_head, workgroup.query_start,
                               workgroup.query_length, spec.head_dim_v * bytes_of(spec.output_type()),
                               workgroup.group)) {}

  int rows_at_once() const { return kernel_.target().wave_size / lanes_of_row(); }

  // Made before the count is known: a wave has nothing else to do while its stores are on their way.
  void make_ready() { language::pin_scalars(kernel_, {records_.dwords(), o_.buffer.dwords()}); }

  // Where the rows of a wave are, and what they see.
  struct Rows {
    Value* position;       // of the lane's row
    Value* head;           // in its group; null: none
    Value* exists;         // i32
    Value* piece;          // of the row
    Value* first_of_lane;  // chunks that the lane's row sees
    Value* last_of_lane;
    Value* row_offset;
    Value* first;  // chunks that some row sees, uniform
    Value* last;
    void each(this auto& rows, auto visit) {
      visit(rows.position);
      visit(rows.exists);
      visit(rows.piece);
      visit(rows.first_of_lane);
      visit(rows.last_of_lane);
      visit(rows.row_offset);
      visit(rows.first);
      visit(rows.last);
      visit(rows.head);
    }
  };
  // One of a wave's merges: the number of the first row in the tile, and what follows from it.
  struct Step {
    Value* number;
    Rows rows;
    void each(this auto& step, auto visit) {
      visit(step.number);
      visit(step.rows);
    }
  };

  // Rows from `first` to `end`, both counted in the tile; `end` is after the last row that the wave may have. Uniform.
  Rows rows_from(Value* first, Value* end) {
    Value* lane = attention::lane_made_anew(kernel_);
    Value* row_at_once = ir_.CreateUDiv(lane, kernel_.constant(lanes_of_row()));
    Value* piece = ir_.CreateSub(lane, ir_.CreateMul(row_at_once, kernel_.constant(lanes_of_row())));
    Value* row_in_tile = ir_.CreateAdd(first, row_at_once);
    const RowOfTile own = row_of_tile(kernel_, spec_, workgroup_, row_in_tile);
    Value* exists = ir_.CreateAnd(ir_.CreateAnd(own.exists, ir_.CreateICmpULT(row_in_tile, end)),
                                  ir_.CreateICmpULT(row_at_once, kernel_.constant(rows_at_once())));
    const Chunks of_row = chunks_of(own.position, own.position);
    Value* last_row = attention::minimum(kernel_, ir_.CreateAdd(first, kernel_.constant(rows_at_once() - 1)),
                                         ir_.CreateSub(end, kernel_.constant(1)));
    const auto position_of = [&](Value* row) {
      return kernel_.uniform(row_of_tile(kernel_, spec_, workgroup_, row).position);
    };
    const Chunks of_rows = chunks_of(position_of(first), position_of(last_row));
    Rows rows = {.position = own.position,
                 .head = own.head,
                 .exists = ir_.CreateZExt(exists, kernel_.i32()),
                 .piece = piece,
                 .first_of_lane = of_row.first,
                 .last_of_lane = of_row.last,
                 .row_offset = nullptr,
                 .first = of_rows.first,
                 .last = of_rows.last};
    rows.row_offset = offset_in_tile(kernel_, spec_, lane_of(rows));
    return rows;
  }

  void merge(const Rows& rows) {
    const Workgroup of_lane = lane_of(rows);
    const Chunks of_row = {rows.first_of_lane, rows.last_of_lane};
    const Chunks of_rows = {kernel_.uniform(rows.first), kernel_.uniform(rows.last)};
    Value* row_offset = rows.row_offset;
    Value* piece = rows.piece;
    Value* lane = attention::lane_made_anew(kernel_);
    Value* lane_offset = ir_.CreateAdd(row_offset, ir_.CreateMul(piece, kernel_.constant(PartsChain::load_bytes)));
    const auto sees = [&](Value* slot) {
      Value* begun = ir_.CreateICmpSGE(slot, of_row.first);
      return ir_.CreateAnd(begun, ir_.CreateICmpSLE(slot, of_row.last));
    };
    const bool alike = workgroup_.begin_offset == nullptr && workgroup_.limit_offset == nullptr;
    const auto load = [&](int bytes, Value* offset, int behind, Value* record) {
      return records_.load(bytes, ir_.CreateAdd(offset, kernel_.constant(behind)), record, language::Reach::agent);
    };
    const auto statistics_of = [&](Value* slot) {
      return attention_combine::statistics_offset(kernel_, slots_, slot, spec_.head_dim_v);
    };
    const auto load_dims = [&](Value* offset, Value* record) {
      Values loaded;
      for (int each = 0; each < loads(); ++each)
        loaded.push_back(load(PartsChain::load_bytes, offset, each * run_bytes(), record));
      return loaded;
    };
    // The uniform part stays inside. Lanes without a row point outside already.
    const auto seen_slot = [&](Value* slot) { return attention::minimum(kernel_, slot, of_rows.last); };
    const auto outputs_of = [&](Value* slot) {
      return attention_combine::output_offset(kernel_, seen_slot(slot), spec_.head_dim_v);
    };
    const auto where_seen = [&](Value* slot, Value* offset) {
      Value* reads = ir_.CreateAnd(of_lane.has_row, sees(slot));
      return ir_.CreateSelect(reads, offset, ir_.getInt32(outside));
    };
    if (lanes_of_row() == language::lanes_of_row) {
      const attention::PartsInLanes::Source source = {
          .sees = sees,
          .all_see_all = alike,
          .statistics =
              [&](Value* slot) {
                Value* at = ir_.CreateAdd(row_offset, statistics_of(slot));
                return load(PartsChain::statistics_bytes, alike ? at : where_seen(slot, at), 0, kernel_.constant(0));
              },
          .dims =
              [&](Value* slot) {
                return load_dims(alike ? lane_offset : where_seen(slot, lane_offset), outputs_of(slot));
              }};
      attention::PartsInLanes chain(kernel_, softmax_, loads(), lane, source);
      return store(of_lane, piece, chain.merged(of_rows.first, of_rows.last));
    }
    const PartsChain::Source source = {
        .sees = sees, .load = [&](Value* slot) {
          Values loaded = {
              load(PartsChain::statistics_bytes, where_seen(slot, row_offset), 0, statistics_of(seen_slot(slot)))};
          for (Value* dims : load_dims(where_seen(slot, lane_offset), outputs_of(slot))) loaded.push_back(dims);
          return loaded;
        }};
    PartsChain chain(kernel_, softmax_, loads(), source);
    store(of_lane, piece, chain.merged(of_rows.first, of_rows.last));
  }

 private:
  struct Chunks {
    Value* first;
    Value* last;  // none where it is smaller
  };

  Workgroup lane_of(const Rows& rows) const {
    Workgroup of_lane = workgroup_;
    of_lane.row = rows.position;
    of_lane.lane_group = rows.piece;
    of_lane.lanes_made_anew = false;
    of_lane.head_in_group = rows.head;
    of_lane.has_row = ir_.CreateICmpNE(rows.exists, kernel_.constant(0));
    of_lane.share = {};
    return of_lane;
  }

  // The fewer, the longer is the run of memory that the lanes of a row load, and the fewer rows a wave has at once.
  int dims_of_lane() const {
    if (spec_.chunk_waves == 0) return merged_dims_of_lane;
    return std::clamp(shared_merge_rows * spec_.head_dim_v / (spec_.chunk_waves * kernel_.target().wave_size),
                      PartsChain::load_dims, merged_dims_of_lane);
  }
  int loads() const { return dims_of_lane() / PartsChain::load_dims; }
  int lanes_of_row() const { return spec_.head_dim_v / dims_of_lane(); }
  // What the lanes of a row load of it at once.
  int run_bytes() const { return lanes_of_row() * PartsChain::load_bytes; }

  // The chunks of the rows from one to another, which see ever later keys: as the walk is cut, and as attention_combine
  // finds them.
  Chunks chunks_of(Value* first_row, Value* last_row) {
    Value* first_key = kernel_.constant(0);
    if (workgroup_.begin_offset != nullptr)
      first_key = attention::maximum(
          kernel_, attention::first_key_at(kernel_, workgroup_.kind, ir_.CreateAdd(first_row, workgroup_.begin_offset)),
          first_key);
    Value* last_key = workgroup_.last_key;
    if (workgroup_.limit_offset != nullptr)
      last_key = attention::minimum(
          kernel_, attention::last_key_at(kernel_, workgroup_.kind, ir_.CreateAdd(last_row, workgroup_.limit_offset)),
          last_key);
    const auto chunk_of = [&](Value* key) {
      return ir_.CreateAShr(key, std::countr_zero(static_cast<unsigned>(attention::chunk_keys)));
    };
    // Keys that end before they begin may do so within a chunk.
    Value* none = ir_.CreateICmpSGT(first_key, last_key);
    return {.first = chunk_of(first_key), .last = ir_.CreateSelect(none, kernel_.constant(-1), chunk_of(last_key))};
  }

  // As attention_combine ends a row.
  void store(const Workgroup& of_lane, Value* piece, const Values& merged) {
    const RowEnd end = end_of_row(kernel_, of_lane, softmax_, {.maximum = merged[0], .sum = merged[1]}, true);
    const int bytes = bytes_of(spec_.output_type());
    std::optional<attention::OutputBytes> narrow;
    if (spec_.scales_output()) narrow.emplace(kernel_, spec_.output_type(), output_scale_at);
    Value* offset = attention::lane_row_offset(kernel_, of_lane, of_lane.row, o_.row_stride, o_.head_stride);
    offset = ir_.CreateAdd(offset, ir_.CreateMul(piece, kernel_.constant(PartsChain::load_dims * bytes)));
    llvm::Type* type = kernel_.vector(kernel_.f32(), PartsChain::load_dims);
    for (int each = 0; each < loads(); ++each) {
      Value* numbers = ir_.CreateIntrinsic(
          llvm::Intrinsic::fma, {type},
          {merged[2 + static_cast<std::size_t>(each)], ir_.CreateVectorSplat(PartsChain::load_dims, end.factor),
           llvm::Constant::getNullValue(type)});
      const std::vector<Value*> dwords =
          narrow ? narrow->of(numbers, 0, PartsChain::load_dims)
                 : language::convert_packed(kernel_, numbers, 0, PartsChain::load_dims,
                                            spec_.dtype == DataType::bf16 ? Element::bf16 : Element::fp16,
                                            language::NanInput::kept);
      const int run = lanes_of_row() * PartsChain::load_dims * bytes;
      o_.buffer.store(dwords.size() == 1 ? dwords.front() : language::gather_dwords(kernel_, dwords),
                      ir_.CreateAdd(offset, kernel_.constant(each * run)), kernel_.constant(0));
    }
    Value* wanted = ir_.CreateIsNotNull(kernel_.argument_i64(offsetof(Arguments, lse)));
    language::if_uniform(kernel_, wanted, Likelihood::even,
                         [&] { store_log_sum_exp(kernel_, of_lane, end.log_sum_exp); });
  }

  Kernel& kernel_;
  llvm::IRBuilder<>& ir_;
  const ForwardKernel& spec_;
  const Workgroup& workgroup_;
  const language::Softmax& softmax_;
  Value* slots_;  // of a row
  Buffer records_;
  attention::Slice o_;
};

// The first of the tile's counters, of which each wave has one.
Value* first_counter(Kernel& kernel, const ForwardKernel& spec, const Workgroup& workgroup) {
  llvm::IRBuilder<>& ir = kernel.ir();
  Value* rows_of_tile = kernel.constant(spec.tile_queries);
  Value* most_rows = ir.CreateMul(kernel.argument_i32(offsetof(Arguments, query_length)), workgroup.group);
  Value* tiles_of_head = ir.CreateUDiv(ir.CreateAdd(most_rows, kernel.constant(spec.tile_queries - 1)), rows_of_tile);
  Value* of_head = ir.CreateAdd(ir.CreateMul(workgroup.batch, kernel.argument_i32(offsetof(Arguments, kv_heads))),
                                kernel.uniform(workgroup.kv_head));
  Value* of_tile =
      ir.CreateAdd(ir.CreateMul(of_head, tiles_of_head), ir.CreateUDiv(workgroup.first_of_tile, rows_of_tile));
  return ir.CreateMul(of_tile, kernel.constant(spec.waves(language::wave_shape(kernel).rows)));
}

// How many runs beside this one leave parts of its rows: those from the run of the first tile that some row sees to the
// run of the last.
Value* other_runs(Kernel& kernel, const Workgroup& of_walk) {
  llvm::IRBuilder<>& ir = kernel.ir();
  Value* tiles = kernel.uniform(of_walk.tiles_of_run);
  const auto run_of = [&](Value* tile) { return ir.CreateUDiv(kernel.uniform(tile), tiles); };
  return ir.CreateSub(run_of(of_walk.last_tile_of_all), run_of(of_walk.first_tile_of_all));
}

// All that merging asks for, at once: one after the other each would be waited for. Whoever asks later has it.
void read_arguments(Kernel& kernel) {
  Values read;
  for (const std::size_t field : {offsetof(Arguments, workspace), offsetof(Arguments, o), offsetof(Arguments, lse),
                                  offsetof(Arguments, o_batch_stride), offsetof(Arguments, o_head_stride),
                                  offsetof(Arguments, sequences) + offsetof(SequenceArguments, query_starts),
                                  offsetof(Arguments, sink), arrival_counters_at})
    read.push_back(kernel.argument_i64(field));
  for (const std::size_t field :
       {offsetof(Arguments, o_head_stride), offsetof(Arguments, sequences) + offsetof(SequenceArguments, query_rows),
        offsetof(Arguments, key_length), offsetof(Arguments, query_heads), offsetof(Arguments, group),
        offsetof(Arguments, query_length), offsetof(Arguments, kv_heads), offsetof(Arguments, o_row_stride),
        offsetof(Arguments, kv_head_multiplier)})
    read.push_back(kernel.argument_i32(field));
  language::pin_scalars(kernel, read);
}

}  // namespace

void merge_if_last(Kernel& kernel, const ForwardKernel& spec, const Workgroup& of_walk,
                   const language::Softmax& softmax) {
  llvm::IRBuilder<>& ir = kernel.ir();
  kernel.read_arguments_anew();
  read_arguments(kernel);
  Value* wave = kernel.wave();
  // Anew: nothing that follows from it lives through the walk.
  Workgroup workgroup = of_walk;
  workgroup.batch = language::opaque(kernel, of_walk.batch);
  workgroup.first_of_tile = kernel.uniform(of_walk.first_of_tile);
  workgroup.rows = kernel.uniform(of_walk.rows);
  workgroup.group = kernel.argument_i32(offsetof(Arguments, group));
  // The rows of the tile. Waves that share them merge some of them in turn, others have their own.
  const int rows_of_wave = language::wave_shape(kernel).rows;
  const bool shares = spec.chunk_waves != 0;
  Value* of_tile = attention::minimum(kernel, ir.CreateSub(workgroup.rows, workgroup.first_of_tile),
                                      kernel.constant(spec.tile_queries));
  Value* own = ir.CreateMul(wave, kernel.constant(rows_of_wave));
  Value* end = shares ? of_tile : attention::minimum(kernel, ir.CreateAdd(own, kernel.constant(rows_of_wave)), of_tile);
  MergeOfRows merge(kernel, spec, workgroup, softmax);
  merge.make_ready();
  Value* first = shares ? ir.CreateMul(wave, kernel.constant(merge.rows_at_once())) : own;
  const MergeOfRows::Step start = {.number = first, .rows = merge.rows_from(first, end)};
  // Here, and not behind the count.
  language::pin(kernel, language::carried(start.rows));
  Value* is_last =
      attention::arrives_last(kernel, kernel.argument_i64(arrival_counters_at),
                              ir.CreateAdd(first_counter(kernel, spec, workgroup), wave), other_runs(kernel, of_walk));
  language::if_uniform(kernel, is_last, Likelihood::rarely, [&] {
    Value* step = kernel.constant(merge.rows_at_once() * (shares ? spec.chunk_waves : 1));
    const auto exists = [&](const MergeOfRows::Step& at) { return ir.CreateICmpSLT(at.number, end); };
    language::if_uniform(kernel, exists(start), Likelihood::even, [&] {
      language::loop_in_phases(
          kernel, 1, language::carried(start),
          [&](int, const Values& values) {
            MergeOfRows::Step at = language::state_of(start, values);
            merge.merge(at.rows);
            at.number = kernel.uniform(ir.CreateAdd(at.number, step));
            return language::if_uniform(
                kernel, exists(at), Likelihood::even, language::carried(at), [&](const Values& before) {
                  Value* number = language::state_of(at, before).number;
                  return language::carried(MergeOfRows::Step{.number = number, .rows = merge.rows_from(number, end)});
                });
          },
          [&](const Values& values) { return exists(language::state_of(start, values)); });
    });
  });
}

}  // namespace wavejit::attention_forward
