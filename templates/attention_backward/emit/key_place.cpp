// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_backward/emit/key_place.h"

#include <limits>

#include "codegen/language/control.h"
#include "codegen/language/lane_place.h"
#include "templates/attention/emit/integers.h"
#include "templates/attention/emit/scale.h"
#include "templates/attention/emit/visible_keys.h"
#include "templates/attention_backward/emit/fields.h"
#include "templates/attention_backward/kernel/arguments.h"
#include "templates/attention_backward/kernel/canon.h"

namespace wavejit::attention_backward {
namespace {

using attention::maximum;
using attention::minimum;
using language::Kernel;
using language::Value;
using language::Values;

// As length_fields, of an array of lengths that is never there.
constexpr attention::SequenceFields uncut_fields = {
    .query_starts = offsetof(Arguments, sequences) + offsetof(attention::SequenceArguments, query_starts),
    .query_rows = offsetof(Arguments, sequences) + offsetof(attention::SequenceArguments, query_rows),
    .query_length = offsetof(Arguments, query_length),
    .key_starts = offsetof(Arguments, sequences) + offsetof(attention::SequenceArguments, key_starts),
    .key_lengths = offsetof(Arguments, no_lengths),
    .key_rows = offsetof(Arguments, sequences) + offsetof(attention::SequenceArguments, key_rows),
    .key_length = offsetof(Arguments, key_length)};

}  // namespace

KeyPlace find_key_place(Kernel& kernel, const KeyKernel& spec) {
  llvm::IRBuilder<>& ir = kernel.ir();
  const auto constant = [&](int value) { return kernel.constant(value); };
  Value* wave = kernel.wave();
  KeyPlace place = {};
  place.kv_head = kernel.workgroup_x();
  place.batch = kernel.workgroup_z();
  place.group = kernel.argument_i32(offsetof(Arguments, group));
  place.first_head = ir.CreateMul(place.kv_head, place.group);
  place.keys_of_tensor = attention::sequence_of(kernel, uncut_fields, place.batch).key_length;
  const int keys_of_workgroup = tile_keys_of(spec);
  Value* first = ir.CreateMul(kernel.workgroup_y(), constant(keys_of_workgroup));
  // The grid has the tiles of the longest sequence.
  language::leave_if(kernel, ir.CreateICmpSGE(first, place.keys_of_tensor));
  place.sequence = attention::sequence_of(kernel, length_fields, place.batch);
  place.first_key = ir.CreateAdd(first, ir.CreateMul(wave, constant(language::wave_shape(kernel).rows * spec.blocks)));

  Value* scale = kernel.argument_i32(offsetof(Arguments, scale_log2e));
  place.scale_log2e = ir.CreateBitCast(attention::positive_scale(kernel, scale), kernel.f32());
  place.sign = attention::query_sign(kernel, scale);

  const attention::KeyLimits limits = attention::key_limits(kernel, spec.mask, spec.has(Modifier::alibi),
                                                            diagonal_fields, window_fields, place.sequence);
  place.diagonal = spec.has(Modifier::alibi) ? limits.diagonal : nullptr;
  place.to_limit = limits.to_limit;
  place.to_begin = limits.to_begin;
  // Rows that see a key of the workgroup, and one tile of hidden ones if there is none: sums of zeros come out of it.
  Value* last_row = ir.CreateSub(place.sequence.query_length, constant(1));
  Value* begin = constant(0);
  if (place.to_limit) begin = maximum(kernel, ir.CreateSub(first, place.to_limit), constant(0));
  Value* end = last_row;
  if (place.to_begin) {
    Value* last_key = ir.CreateAdd(first, constant(keys_of_workgroup - 1));
    end = minimum(kernel, end, ir.CreateSub(last_key, place.to_begin));
  }
  begin = maximum(kernel, minimum(kernel, begin, last_row), constant(0));
  end = maximum(kernel, end, begin);
  place.first_tile = ir.CreateUDiv(begin, constant(tile_rows));
  place.tiles = ir.CreateAdd(ir.CreateUDiv(end, constant(tile_rows)), constant(1));
  return place;
}

KeyPlace place_of_block(Kernel& kernel, const KeyPlace& first, int block) {
  if (block == 0) return first;
  KeyPlace place = first;
  place.first_key = kernel.ir().CreateAdd(first.first_key, kernel.constant(language::wave_shape(kernel).rows * block));
  return place;
}

LaneKey lane_key(Kernel& kernel, const KeyPlace& place) {
  llvm::IRBuilder<>& ir = kernel.ir();
  Value* lane = attention::lane_made_anew(kernel);
  return {.key = ir.CreateAdd(place.first_key, language::row_of_lane(kernel, lane)),
          .lane_group = language::group_of_lane(kernel, lane)};
}

void hide_rows(Kernel& kernel, const KeyPlace& place, Value* first_row, language::Accumulator& scores) {
  llvm::IRBuilder<>& ir = kernel.ir();
  const language::AccumulatorLayout layout = scores.layout;
  const auto hide = [&](Value* needed, Value* limit, llvm::CmpInst::Predicate hides) {
    scores.value =
        language::if_uniform(kernel, needed, language::Likelihood::even, {scores.value}, [&](const Values& before) {
          // Counted from the first row of the lane's own group, so that a compare takes a constant.
          const LaneKey own = lane_key(kernel, place);
          Value* edge = ir.CreateSub(ir.CreateSub(own.key, limit), first_row);
          Value* bound = ir.CreateSub(edge, ir.CreateMul(own.lane_group, kernel.constant(layout.row_block)));
          Value* hidden = kernel.constant(-std::numeric_limits<float>::infinity());
          Value* masked = before[0];
          for (int r = 0; r < layout.registers(); ++r) {
            Value* is_hidden = ir.CreateICmp(hides, bound, kernel.constant(layout.row_of_register(r)));
            Value* score = ir.CreateExtractElement(before[0], static_cast<std::uint64_t>(r));
            masked = ir.CreateInsertElement(masked, ir.CreateSelect(is_hidden, hidden, score),
                                            static_cast<std::uint64_t>(r));
          }
          return Values{masked};
        })[0];
  };
  // Rows before the first that sees the key. All rows see it where the last key of the wave is seen by the first row.
  if (place.to_limit) {
    Value* last_key = ir.CreateAdd(place.first_key, kernel.constant(layout.columns - 1));
    hide(ir.CreateICmpSGT(ir.CreateSub(last_key, place.to_limit), first_row), place.to_limit, llvm::CmpInst::ICMP_SGT);
  }
  // And behind the last.
  if (place.to_begin) {
    Value* last_row = ir.CreateAdd(first_row, kernel.constant(layout.rows - 1));
    hide(ir.CreateICmpSLT(ir.CreateSub(place.first_key, place.to_begin), last_row), place.to_begin,
         llvm::CmpInst::ICMP_SLT);
  }
}

}  // namespace wavejit::attention_backward
