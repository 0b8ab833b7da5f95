// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/softmax_lse/emit/emit.h"

#include <llvm/IR/IntrinsicsAMDGPU.h>

#include <array>
#include <span>

#include "codegen/language/control.h"
#include "codegen/language/lane_place.h"
#include "codegen/language/softmax.h"
#include "templates/attention/emit/integers.h"
#include "templates/attention/emit/scale.h"
#include "templates/attention/emit/visible_keys.h"
#include "templates/attention/kernel/canon.h"
#include "templates/softmax_lse/emit/chunk_sums.h"
#include "templates/softmax_lse/emit/tile.h"

namespace wavejit::softmax_lse {
namespace {

using attention::maximum;
using attention::minimum;
using language::Buffer;
using language::Kernel;
using language::PartStatistics;
using language::Softmax;
using language::Value;
using language::Values;

// The part of the launch that a workgroup does; uniform.
struct Workgroup {
  Value* first_row;
  Value* rows;        // of it: at least 1
  Value* keys;        // of its sequence
  Value* diagonal;    // of row 0
  Value* tile_shift;  // a row has 1 << tile_shift tiles at a time
  Value* first_tile;  // of any key that one of its rows sees, counted down to its chunk
  Value* tiles;       // behind the last one
  Value* scale_log2e;
  Value* negated;
};

// What a lane does in it.
struct Lane {
  Value* half;
  Value* column;  // of the wave's tiles
  Value* slot;    // of its row's tiles
  Value* row;     // of the workgroup
  Value* in_rows;
  Value* begin;  // keys that the row sees
  Value* end;
};

constexpr attention::WindowFields window_fields = {.left = offsetof(Arguments, seen.window_left),
                                                   .right = offsetof(Arguments, seen.window_right)};

struct KeyCount {
  Value* keys;
  Value* told;  // the caller's key_lengths, even if larger than `keys`: it gives the diagonals
};
KeyCount keys_of_sequence(Kernel& kernel) {
  llvm::IRBuilder<>& ir = kernel.ir();
  // No sum of a length with a row and an offset overflows.
  constexpr int most_told = 1 << 29;
  Value* keys = kernel.argument_i32(offsetof(Arguments, seen.key_length));
  Value* lengths = kernel.argument_i64(offsetof(Arguments, key_lengths));
  const Values counts = language::if_uniform(
      kernel, ir.CreateIsNotNull(lengths), language::Likelihood::even, {keys, keys}, [&](const Values& all) {
        Value* offset = ir.CreateShl(ir.CreateZExt(kernel.workgroup_z(), kernel.i64()), 2);
        Value* length = kernel.load_scalar(ir.CreateAdd(lengths, offset), kernel.i32());
        Value* told = maximum(kernel, length, kernel.constant(0));
        // Unsigned: beside the maximum a signed minimum would make it a median, which only the vector unit has.
        return Values{minimum(kernel, told, all[0]),
                      ir.CreateBinaryIntrinsic(llvm::Intrinsic::umin, told, kernel.constant(most_told))};
      });
  return {.keys = counts[0], .told = counts[1]};
}

// The keys of row `row` of the sequence.
attention::KeyRange keys_of(Kernel& kernel, Value* row, Value* diagonal, Value* keys) {
  return attention::visible_keys(kernel, window_fields, kernel.ir().CreateAdd(row, diagonal), keys);
}

Workgroup begin_workgroup(Kernel& kernel) {
  llvm::IRBuilder<>& ir = kernel.ir();
  Value* most = kernel.argument_i32(offsetof(Arguments, rows));
  Value* queries = kernel.argument_i32(offsetof(Arguments, seen.query_length));
  Value* first_row = ir.CreateMul(kernel.workgroup_x(), most);
  Value* rows = minimum(kernel, ir.CreateSub(queries, first_row), most);
  const auto [keys, told] = keys_of_sequence(kernel);
  Value* diagonal = ir.CreateAdd(
      kernel.argument_i32(offsetof(Arguments, seen.causal_offset)),
      ir.CreateAnd(ir.CreateSub(told, queries), kernel.argument_i32(offsetof(Arguments, seen.bottom_right_mask))));
  // The diagonal moves with the row: the first row has the first key, the last row the last one.
  Value* begin = keys_of(kernel, first_row, diagonal, keys).begin;
  Value* last_row = ir.CreateSub(ir.CreateAdd(first_row, rows), kernel.constant(1));
  Value* end = keys_of(kernel, last_row, diagonal, keys).end;
  Value* first_tile = ir.CreateMul(ir.CreateUDiv(begin, kernel.constant(attention::chunk_keys)),
                                   kernel.constant(attention::chunk_tiles));
  Value* tiles =
      ir.CreateUDiv(ir.CreateAdd(maximum(kernel, end, kernel.constant(0)), kernel.constant(attention::tile_keys - 1)),
                    kernel.constant(attention::tile_keys));
  // If the scale is negative, the scores are negated instead.
  Value* scale = kernel.argument_i32(offsetof(Arguments, scale_log2e));
  Value* magnitude = attention::positive_scale(kernel, scale);
  return {.first_row = first_row,
          .rows = rows,
          .keys = keys,
          .diagonal = diagonal,
          .tile_shift = kernel.argument_i32(offsetof(Arguments, tile_shift)),
          .first_tile = first_tile,
          .tiles = tiles,
          .scale_log2e = ir.CreateBitCast(magnitude, kernel.f32()),
          .negated = ir.CreateICmpSLT(scale, kernel.constant(0))};
}

Lane place_lane(Kernel& kernel, const Workgroup& workgroup) {
  llvm::IRBuilder<>& ir = kernel.ir();
  Value* column = language::row_of_lane(kernel, kernel.lane());
  Value* tile = ir.CreateAdd(ir.CreateMul(kernel.wave(), kernel.constant(language::wave_shape(kernel).rows)), column);
  Value* row = ir.CreateLShr(tile, workgroup.tile_shift);
  Value* slots = ir.CreateShl(kernel.constant(1), workgroup.tile_shift);
  Value* in_rows = ir.CreateICmpSLT(row, workgroup.rows);
  const auto [begin, end] = keys_of(kernel, ir.CreateAdd(workgroup.first_row, row), workgroup.diagonal, workgroup.keys);
  return {.half = language::group_of_lane(kernel, kernel.lane()),
          .column = column,
          .slot = ir.CreateAnd(tile, ir.CreateSub(slots, kernel.constant(1))),
          .row = row,
          .in_rows = in_rows,
          .begin = begin,
          .end = ir.CreateSelect(in_rows, end, kernel.constant(0))};
}

class Emission {
 public:
  Emission(Kernel& kernel, const SoftmaxKernel& spec)
      : kernel_(kernel),
        spec_(spec),
        workgroup_(begin_workgroup(kernel)),
        lane_(place_lane(kernel, workgroup_)),
        softmax_(kernel, workgroup_.scale_log2e, kernel.argument_f32(offsetof(Arguments, rescale_threshold))),
        sums_(kernel, softmax_, key_order(spec),
              {.half = lane_.half,
               .column = lane_.column,
               .slot = lane_.slot,
               .row = lane_.row,
               .tile_shift = workgroup_.tile_shift}) {}

  void emit() {
    const Buffer scores =
        slice(offsetof(Arguments, scores), offsetof(Arguments, scores_batch_stride),
              offsetof(Arguments, scores_head_stride), offsetof(Arguments, scores_row_stride), spec_.scores);
    Value* stride = kernel_.argument_i32(offsetof(Arguments, scores_row_stride));
    const ScoreReader reader(kernel_, spec_, scores, stride, workgroup_.negated);
    const PartStatistics nothing = {.maximum = kernel_.constant(minus_infinity), .sum = kernel_.constant(0.0F)};
    if (spec_.rows == Rows::resident) {
      const TilePlace place = place_of(kernel_.constant(0));
      const Scores tile = read(reader, place);
      const PartStatistics row = sums_.merge_into(nothing, sums_.part_of(tile));
      store_log_sum_exp(row);
      if_weights([&](const WeightWriter& writer) { write_weights(writer, tile, place, row); });
      return;
    }
    Value* step = ir().CreateShl(kernel_.constant(1), workgroup_.tile_shift);
    const Values end = language::loop_in_phases(
        kernel_, 1, {workgroup_.first_tile, nothing.maximum, nothing.sum},
        [&](int, const Values& at) {
          const PartStatistics row =
              sums_.merge_into({.maximum = at[1], .sum = at[2]}, sums_.part_of(read(reader, place_of(at[0]))));
          sums_.leave_parts();
          return Values{ir().CreateAdd(at[0], step), row.maximum, row.sum};
        },
        [&](const Values& at) { return ir().CreateICmpSLT(at[0], workgroup_.tiles); });
    const PartStatistics row = {.maximum = end[1], .sum = end[2]};
    store_log_sum_exp(row);
    // Once more from key 0: keys that a row does not see get a weight of 0.
    Value* keys = kernel_.argument_i32(offsetof(Arguments, seen.key_length));
    if_weights([&](const WeightWriter& writer) {
      language::loop_in_phases(
          kernel_, 1, {kernel_.constant(0)},
          [&](int, const Values& at) {
            const TilePlace place = place_of(at[0]);
            write_weights(writer, read(reader, place), place, row);
            return Values{ir().CreateAdd(at[0], step)};
          },
          [&](const Values& at) {
            return ir().CreateICmpSLT(ir().CreateMul(at[0], kernel_.constant(attention::tile_keys)), keys);
          });
    });
  }

 private:
  llvm::IRBuilder<>& ir() { return kernel_.ir(); }

  // This workgroup's rows of one tensor.
  Buffer slice(std::size_t pointer, std::size_t batch_stride, std::size_t head_stride, std::size_t row_stride,
               DataType type) {
    const auto wide = [&](Value* value) { return ir().CreateZExt(value, kernel_.i64()); };
    const auto step = [&](Value* index, std::size_t field) {
      return ir().CreateMul(wide(index), kernel_.argument_i64(field));
    };
    Value* stride = kernel_.argument_i32(row_stride);
    Value* base = ir().CreateAdd(kernel_.argument_i64(pointer), step(kernel_.workgroup_z(), batch_stride));
    base = ir().CreateAdd(base, step(kernel_.workgroup_y(), head_stride));
    base = ir().CreateAdd(base, ir().CreateMul(wide(workgroup_.first_row), wide(stride)));
    Value* before_last = ir().CreateMul(ir().CreateSub(workgroup_.rows, kernel_.constant(1)), stride);
    Value* row =
        ir().CreateMul(kernel_.argument_i32(offsetof(Arguments, seen.key_length)), kernel_.constant(bytes_of(type)));
    return {kernel_, base, ir().CreateAdd(before_last, row)};
  }

  // The lane's own place among the tiles that begin with `first`.
  TilePlace place_of(Value* first) {
    Value* tile_key = ir().CreateMul(ir().CreateAdd(first, lane_.slot), kernel_.constant(attention::tile_keys));
    Value* own = ir().CreateMul(lane_.half, kernel_.constant(half_keys(key_order(spec_))));
    return {.row = lane_.row, .tile_key = tile_key, .lane_key = ir().CreateAdd(tile_key, own)};
  }

  // The scores of a tile, −∞ where the row does not see the key.
  Scores read(const ScoreReader& reader, const TilePlace& place) {
    Value* behind = ir().CreateAdd(place.tile_key, kernel_.constant(attention::tile_keys));
    Value* visible =
        ir().CreateAnd(ir().CreateICmpSLT(place.tile_key, lane_.end), ir().CreateICmpSGT(behind, lane_.begin));
    Value* whole =
        ir().CreateAnd(ir().CreateICmpSGE(place.tile_key, lane_.begin), ir().CreateICmpSLE(behind, lane_.end));
    const Scores all = reader.read(place, visible);
    const Values seen = language::if_uniform(
        kernel_, language::any_lane(kernel_, ir().CreateNot(whole)), language::Likelihood::even,
        {all[0].value, all[1].value}, [&](const Values& values) {
          // begin ≤ key < end as one unsigned compare.
          Value* from_begin = ir().CreateSub(place.lane_key, lane_.begin);
          Value* count = maximum(kernel_, ir().CreateSub(lane_.end, lane_.begin), kernel_.constant(0));
          Values masked = values;
          for (int group = 0; group < groups; ++group)
            for (int key = 0; key < group_keys; ++key) {
              Value*& part = masked[static_cast<std::size_t>(group / 4)];
              const int at = (4 * (group % 4)) + key;
              Value* number = ir().CreateAdd(from_begin, kernel_.constant(first_key(key_order(spec_), group) + key));
              Value* score = ir().CreateSelect(ir().CreateICmpULT(number, count), ir().CreateExtractElement(part, at),
                                               kernel_.constant(minus_infinity));
              part = ir().CreateInsertElement(part, score, at);
            }
          return masked;
        });
    return {language::Accumulator{.value = seen[0], .layout = all[0].layout},
            language::Accumulator{.value = seen[1], .layout = all[1].layout}};
  }

  void store_log_sum_exp(const PartStatistics& row) {
    Value* pointer = kernel_.argument_i64(offsetof(Arguments, lse));
    language::if_uniform(kernel_, ir().CreateIsNotNull(pointer), language::Likelihood::even, [&] {
      const auto wide = [&](Value* value) { return ir().CreateZExt(value, kernel_.i64()); };
      Value* base = ir().CreateAdd(
          pointer,
          ir().CreateMul(wide(kernel_.workgroup_z()), kernel_.argument_i64(offsetof(Arguments, lse_batch_stride))));
      base = ir().CreateAdd(base, ir().CreateMul(wide(kernel_.workgroup_y()),
                                                 kernel_.argument_i64(offsetof(Arguments, lse_head_stride))));
      base = ir().CreateAdd(base, ir().CreateShl(wide(workgroup_.first_row), 2));
      const Buffer lse(kernel_, base, ir().CreateShl(workgroup_.rows, 2));
      // One lane a row has it; the others' offsets are beyond the slice.
      Value* first = ir().CreateICmpEQ(ir().CreateOr(lane_.slot, lane_.half), kernel_.constant(0));
      Value* offset =
          ir().CreateSelect(ir().CreateAnd(first, lane_.in_rows), ir().CreateShl(lane_.row, 2), ir().getInt32(nowhere));
      lse.store(ir().CreateBitCast(softmax_.log_sum_exp(row), kernel_.i32()), offset, kernel_.constant(0));
    });
  }

  template <typename Body>
  void if_weights(Body body) {
    Value* pointer = kernel_.argument_i64(offsetof(Arguments, weights));
    language::if_uniform(kernel_, ir().CreateIsNotNull(pointer), language::Likelihood::even, [&] {
      const Buffer weights =
          slice(offsetof(Arguments, weights), offsetof(Arguments, weights_batch_stride),
                offsetof(Arguments, weights_head_stride), offsetof(Arguments, weights_row_stride), spec_.weights);
      Value* stride = kernel_.argument_i32(offsetof(Arguments, weights_row_stride));
      body(WeightWriter(kernel_, spec_, weights, stride));
    });
  }

  void write_weights(const WeightWriter& writer, const Scores& scores, const TilePlace& place,
                     const PartStatistics& row) {
    Value* shift = softmax_.shift(row.maximum);
    Value* inverse = softmax_.inverse(row.sum);
    Scores weights = scores;
    for (language::Accumulator& part : weights)
      for (int r = 0; r < part.layout.registers(); ++r) {
        Value* score = ir().CreateExtractElement(part.value, static_cast<std::uint64_t>(r));
        Value* weight = ir().CreateFMul(softmax_.exp2(softmax_.exponent(score, shift)), inverse);
        part.value = ir().CreateInsertElement(part.value, weight, static_cast<std::uint64_t>(r));
      }
    writer.write(weights, place, lane_.in_rows, kernel_.argument_i32(offsetof(Arguments, seen.key_length)));
  }

  Kernel& kernel_;
  const SoftmaxKernel& spec_;
  Workgroup workgroup_;
  Lane lane_;
  Softmax softmax_;
  ChunkSums sums_;
};

}  // namespace

families::EmittedModule emit(const SoftmaxKernel& spec, const targets::Target& target, llvm::LLVMContext& context) {
  const auto name = [](const auto& names, auto value) { return std::string(families::name_in(names, value)); };
  Kernel kernel(context, target,
                {.name = "softmax_lse_" + name(data_types, spec.scores) + "_" + name(data_types, spec.weights) + "_" +
                         name(rows_names, spec.rows) + "_" + name(access_names, spec.access) + "_" + spec.target,
                 .threads = threads,
                 .waves_per_simd = waves_per_simd,
                 .argument_bytes = sizeof(Arguments),
                 .strength_reduction = false});
  // Ids are made where they are first asked for: here, where every block can see them.
  (void)kernel.wave();
  (void)kernel.lane();
  Emission(kernel, spec).emit();
  return kernel.finish();
}

std::span<const families::KernelEmitter> emitters() {
  static constexpr std::array all = {families::emitter_of<SoftmaxKernel>};
  return all;
}

}  // namespace wavejit::softmax_lse
