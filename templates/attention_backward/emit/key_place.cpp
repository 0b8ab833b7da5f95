// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_backward/emit/key_place.h"

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

// Like length_fields, but with an array of lengths that is always null.
constexpr attention::SequenceFields uncut_fields = {
    .query_starts = offsetof(Arguments, sequences) + offsetof(attention::SequenceArguments, query_starts),
    .query_rows = offsetof(Arguments, sequences) + offsetof(attention::SequenceArguments, query_rows),
    .query_length = offsetof(Arguments, seen.query_length),
    .key_starts = offsetof(Arguments, sequences) + offsetof(attention::SequenceArguments, key_starts),
    .key_lengths = offsetof(Arguments, no_lengths),
    .key_rows = offsetof(Arguments, sequences) + offsetof(attention::SequenceArguments, key_rows),
    .key_length = offsetof(Arguments, seen.key_length)};

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
  Value* owner = spec.shared ? ir.CreateUDiv(wave, constant(sharing_waves)) : wave;
  place.first_key = ir.CreateAdd(first, ir.CreateMul(owner, constant(language::wave_shape(kernel).rows * spec.blocks)));

  Value* scale = kernel.argument_i32(offsetof(Arguments, scale_log2e));
  place.scale_log2e = ir.CreateBitCast(attention::positive_scale(kernel, scale), kernel.f32());
  place.sign = attention::query_sign(kernel, scale);

  place.limits = attention::key_limits(kernel, spec.mask, spec.has(Modifier::alibi), diagonal_fields, window_fields,
                                       place.sequence);
  // One tile of hidden rows if none sees a key of the workgroup: sums of zeros come out of it.
  Value* last_key = ir.CreateAdd(first, constant(keys_of_workgroup - 1));
  const attention::RowRange rows = attention::visible_rows(kernel, place.limits, place.sequence, first, last_key);
  Value* last_row = ir.CreateSub(place.sequence.query_length, constant(1));
  Value* begin = maximum(kernel, minimum(kernel, rows.begin, last_row), constant(0));
  Value* end = maximum(kernel, ir.CreateSub(rows.end, constant(1)), begin);
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

}  // namespace wavejit::attention_backward
